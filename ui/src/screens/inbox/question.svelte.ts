// One approval that is looked at: as it is now, and deciding it.
import { untrack } from 'svelte';
import { api, Refusal } from '../../api/client';
import type { ApprovalView, CommandView, DecisionRequest } from '../../api/schema';
import { events } from '../../lib/events.svelte';
import { guard } from '../../lib/guard';
import { load, type Loaded } from '../../lib/load.svelte';
import { session } from '../../lib/session.svelte';
import { text as texts } from '../../text';
import { text } from './text';

interface Looked {
  approval: ApprovalView;
  /** The first of its runs. */
  run: CommandView | undefined;
}

/** What is tried on a copy is overtaken by files that change, and nobody tells
 * us when they do. */
const LOOK_MS = 2000;
/** A run's output while it goes on. */
const FOLLOW_MS = 1000;

export class Question {
  readonly loaded: Loaded<Looked>;
  /** It was open when it was shown first. */
  wasOpen = $state(false);
  /** It was decided on this page. */
  here = $state(false);
  /** Something is asked of the server. */
  busy = $state(false);
  /** What is not as it was a moment ago. */
  note = $state('');
  error = $state('');
  #id: string;
  #row: ApprovalView | undefined;
  #looking = false;
  #explained: ApprovalView['explanation'] = null;

  /** To be made while a component is set up. */
  constructor(id: string, row: ApprovalView | undefined) {
    this.#id = id;
    this.#row = row;
    this.loaded = load<Looked>(
      async (signal) => {
        const look = (run: string) => api.get('/commands/{id}', { path: { id: run }, signal }).catch(() => undefined);
        // Where the run is known already, nobody waits for its question first.
        const known = untrack(() => this.approval?.command_ids[0]);
        const early = known ? look(known) : undefined;
        const approval = await api.get('/approvals/{id}', { path: { id }, signal });
        const first = approval.command_ids[0];
        const run = await (first === known ? early : first && look(first));
        // Once it is decided nobody explains it any more; what was said stays.
        this.#explained = approval.explanation ?? this.#explained;
        return { approval: { ...approval, explanation: this.#explained }, run: run || undefined };
      },
      ({ approval_id, command_id }) =>
        approval_id === this.approval?.approval_id ||
        (command_id !== null && this.approval?.command_ids.includes(command_id) === true),
    );
    $effect(() => {
      if (this.approval?.state === 'pending') this.wasOpen = true;
    });
    // Whatever it is that is asked now, it is not what a finger was meant for.
    $effect(() => {
      void this.version;
      guard.restart();
      guard.moved();
    });
    $effect(() => this.#follow());
  }

  /** What is known of it: at first, what the list knows. */
  approval = $derived.by(() => this.loaded.value?.approval ?? this.#row);
  run = $derived.by(() => this.loaded.value?.run);
  /** Another one whenever something else is asked. */
  version = $derived.by(() => `${this.approval?.fingerprint} ${this.approval?.state}`);
  whole = $derived.by(() => this.loaded.value !== undefined);
  pending = $derived.by(() => this.approval?.state === 'pending');
  /** It is tried on a copy now. */
  trying = $derived.by(() => this.pending && this.run?.state === 'running');

  /** Why nothing can be decided just now, whatever the decision. */
  shut = $derived.by(() => {
    if (events.state === 'offline') return text.offline;
    if (this.trying) return text.tryingNow;
    return '';
  });

  async decide(decision: Omit<DecisionRequest, 'fingerprint'>): Promise<boolean> {
    const approval = this.approval;
    if (!approval || this.busy) return false;
    const body = { ...decision, fingerprint: approval.fingerprint };
    return this.#ask(text.decideFailed, async () => {
      await api.post('/approvals/{id}/decision', { path: { id: approval.approval_id }, body });
      this.here = true;
    });
  }

  async extend(): Promise<void> {
    const path = { id: this.#id };
    await this.#ask(text.extended, () => api.post('/approvals/{id}/extend', { path, body: {} }));
  }

  async tryOut(): Promise<void> {
    const path = { id: this.#id };
    await this.#ask(text.tryFailed, () => api.post('/approvals/{id}/preview', { path }));
  }

  async stopTry(): Promise<void> {
    const id = this.run?.command_id;
    if (!id) return;
    const body = { interrupt: false };
    await this.#ask(text.tryFailed, () => api.post('/commands/{id}/stop', { path: { id }, body }));
  }

  /** Whether who looks has said yes already, and others have to. */
  get answered(): boolean {
    const me = session.me?.principal_id;
    return this.approval?.answers.some(({ by, approved }) => approved && by === me) ?? false;
  }

  async #ask(what: string, ask: () => Promise<unknown>): Promise<boolean> {
    this.busy = true;
    this.error = '';
    this.note = '';
    try {
      await ask();
      return true;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      // That somebody was faster is told by what is shown, and is no error.
      if (error.code === 'payload_changed' || error.code === 'conflict') this.note = text.changed;
      else if (error.code !== 'already_decided') this.error = texts.couldNot(what, error);
      return false;
    } finally {
      await this.loaded.look();
      this.busy = false;
    }
  }

  #pace = $derived.by(() => {
    if (this.run?.state === 'running') return FOLLOW_MS;
    return this.pending && this.approval?.effect != null ? LOOK_MS : 0;
  });

  #follow(): (() => void) | undefined {
    const pace = this.#pace;
    if (!pace) return undefined;
    const look = async () => {
      if (this.#looking || document.hidden || events.state !== 'connected') return;
      this.#looking = true;
      await this.loaded.look();
      this.#looking = false;
    };
    const timer = setInterval(() => void look(), pace);
    return () => clearInterval(timer);
  }
}
