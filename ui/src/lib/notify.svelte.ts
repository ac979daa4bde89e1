// Notifications of the browser, for somebody who does not look at the page.
import { api } from '../api/client';
import type { ApprovalView } from '../api/schema';
import { text } from '../text';
import { events } from './events.svelte';
import { clock, isQuiet } from './quiet';
import { route } from './route.svelte';
import { flat } from './safe';
import { settings } from './settings.svelte';

/** At most one for each agent in this time. */
const EVERY_MS = 30_000;
/** As much of a command as fits. */
const SHOWN = 120;

class Notify {
  /** What the browser said when it was asked just now. */
  said = $state<NotificationPermission>();
  #permission = $state<NotificationPermission>(
    typeof Notification === 'undefined' ? 'denied' : Notification.permission,
  );
  /** Worth offering: neither on nor forbidden. */
  offered = $derived(this.#permission !== 'denied' && !(settings.notify && this.#permission === 'granted'));
  #last = new Map<string, number>();
  /** What came too soon after another of the same agent, to be told together. */
  #later = new Map<string, string[]>();
  /** What is shown, with the questions that it is about. */
  #open = new Map<Notification, Set<string>>();

  constructor() {
    // Only what happens from now on: nobody is notified of what there was.
    events.on(({ event, approval_id }) => {
      if (!approval_id) return;
      if (event === 'approval.created') void this.#created(approval_id);
      if (event === 'approval.closed') this.#withdraw(approval_id);
    });
    // What was decided while there was no server was not heard of.
    events.onAgain(() => void this.#lookAgain());
  }

  /** Asks the browser; only because a person has pressed something. */
  async ask(): Promise<void> {
    this.#permission = await Notification.requestPermission();
    this.said = this.#permission;
    settings.notify = this.#permission === 'granted';
  }

  /** Whether this is a moment to notify. */
  get #wanted(): boolean {
    const quiet = isQuiet(settings.quiet, clock(new Date()));
    return settings.notify && this.#permission === 'granted' && document.hidden && !quiet;
  }

  async #created(id: string): Promise<void> {
    if (!this.#wanted) return;
    const one = await pending(id);
    if (!one) return;
    const agent = one.requested_by;
    const waiting = this.#later.get(agent);
    const wait = (this.#last.get(agent) ?? -Infinity) + EVERY_MS - performance.now();
    if (waiting) waiting.push(id);
    else if (wait > 0) {
      this.#later.set(agent, [id]);
      setTimeout(() => void this.#together(agent), wait);
    } else this.#show(agent, [one]);
  }

  async #together(agent: string): Promise<void> {
    const ids = this.#later.get(agent) ?? [];
    this.#later.delete(agent);
    if (!this.#wanted) return;
    const some = (await Promise.all(ids.map(pending))).filter((one) => one !== undefined);
    if (some.length) this.#show(agent, some);
  }

  #show(agent: string, some: ApprovalView[]): void {
    this.#last.set(agent, performance.now());
    const [first] = some;
    const title = some.length > 1 ? text.notifications(flat(agent), some.length) : text.notification(flat(agent));
    const shown = new Notification(title, {
      body: some.map(body).join('\n'),
      tag: first!.approval_id,
      icon: '/icon-waiting.svg',
    });
    this.#open.set(shown, new Set(some.map(({ approval_id }) => approval_id)));
    shown.onclose = () => this.#open.delete(shown);
    // Opening is all that it does: nothing is decided by it.
    shown.onclick = () => {
      focus();
      route.go(some.length > 1 ? '/inbox' : `/a/${encodeURIComponent(first!.approval_id)}`);
      shown.close();
    };
  }

  /** Takes back what is about nothing any more. */
  #withdraw(id: string): void {
    for (const [shown, about] of this.#open) {
      if (!about.delete(id) || about.size) continue;
      shown.close();
      this.#open.delete(shown);
    }
  }

  async #lookAgain(): Promise<void> {
    for (const id of [...this.#open.values()].flatMap((about) => [...about])) {
      if (!(await pending(id))) this.#withdraw(id);
    }
  }
}

/** The question, if it still waits. */
async function pending(id: string): Promise<ApprovalView | undefined> {
  const one = await api.get('/approvals/{id}', { path: { id } }).catch(() => undefined);
  return one?.state === 'pending' ? one : undefined;
}

function body({ command, risk }: ApprovalView): string {
  const all = [...flat(command).replace(/\s+/g, ' ')];
  const cut = all.length > SHOWN ? `${all.slice(0, SHOWN).join('')}…` : all.join('');
  return risk === 'high' ? `${text.highRisk} · ${cut}` : cut;
}

export const notify = new Notify();
