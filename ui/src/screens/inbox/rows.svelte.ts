// What the inbox lists: what waits, in an order that does not jump, and what was
// decided today.
import { untrack } from 'svelte';
import { api } from '../../api/client';
import type { ApprovalView } from '../../api/schema';
import { load } from '../../lib/load.svelte';
import { session } from '../../lib/session.svelte';
import { arrange } from './arrange';

/** More rows than anybody goes through. */
const MOST = 200;

export class Rows {
  rows = $state.raw<ApprovalView[]>([]);
  /** What came in above the shown one. */
  held = $state.raw<ApprovalView[]>([]);
  readonly loaded;
  readonly decided;
  /** Runs whose changes are kept although their question has ended. */
  readonly undecided;
  #shown: () => string | undefined;

  /** To be made while a component is set up. */
  constructor(shown: () => string | undefined) {
    this.#shown = shown;
    this.loaded = load(
      (signal) => api.get('/approvals', { query: { status: 'pending', limit: MOST }, signal }),
      ({ event }) => event.startsWith('approval.'),
    );
    // What waits comes first.
    const there = $derived(this.loaded.value !== undefined);
    this.decided = load(
      async (signal) => {
        if (!there) return undefined;
        const of = (status: 'approved' | 'rejected') =>
          api.get('/approvals', { query: { status, limit: MOST }, signal });
        const [approved, rejected] = await Promise.all([of('approved'), of('rejected')]);
        return byMe([...approved.approvals, ...rejected.approvals]);
      },
      ({ event }) => event === 'approval.closed',
    );
    this.undecided = load(
      async (signal) => {
        if (!there) return [];
        const { drafts } = await api.get('/drafts', { signal });
        return drafts.flatMap(({ runs }) => runs).filter(({ approval_id }) => !approval_id);
      },
      ({ event, kind }) => event === 'approval.closed' || kind.startsWith('changes.'),
    );
    $effect(() => {
      const waiting = this.loaded.value?.approvals;
      if (waiting) untrack(() => this.#take(waiting));
    });
  }

  /** Moves on: what is closed goes, and what was held back comes. */
  settle(): void {
    const waiting = this.loaded.value?.approvals ?? [];
    this.rows = waiting;
    this.held = [];
  }

  #take(waiting: ApprovalView[]): void {
    const { rows, held } = arrange(this.rows, waiting, this.#shown());
    const open = new Set(waiting.map(({ approval_id }) => approval_id));
    this.rows = rows;
    this.held = held;
    for (const row of rows) {
      if (row.state === 'pending' && !open.has(row.approval_id)) void this.#closed(row.approval_id);
    }
  }

  // How something ended that waited a moment ago.
  async #closed(id: string): Promise<void> {
    const now = await api.get('/approvals/{id}', { path: { id } }).catch(() => undefined);
    if (now) this.rows = this.rows.map((row) => (row.approval_id === id ? now : row));
  }
}

function byMe(all: ApprovalView[]): { today: number; last: ApprovalView | undefined } {
  const me = session.me?.principal_id;
  const midnight = new Date().setHours(0, 0, 0, 0);
  const mine = all.filter(({ decided_by }) => decided_by === me);
  const time = ({ decided_at }: ApprovalView) => Date.parse(decided_at ?? '');
  const newest = [...all].sort((a, b) => time(b) - time(a))[0];
  return { today: mine.filter((one) => time(one) >= midnight).length, last: newest };
}
