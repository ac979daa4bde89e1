// What happens, as it happens: one stream for the whole page.
import { address } from '../api/client';

/** One thing that happened, as the server tells it. */
export interface Event {
  id: number;
  event: string;
  time: string;
  kind: string;
  actor: string;
  command_id: string | null;
  approval_id: string | null;
  sandbox_id: string | null;
}

const KINDS = [
  'approval.created',
  'approval.updated',
  'approval.closed',
  'run.created',
  'run.updated',
  'terminal.opened',
  'terminal.updated',
  'terminal.closed',
  'principal.paused',
  'principal.resumed',
  'policy.changed',
  'health.changed',
  'reset',
];

/** After this long without the server, nothing can be decided. */
const OFFLINE_MS = 10_000;

const AGAIN_MS = 1000;

type Hear = (event: Event) => void;

class Events {
  /** `connected`, `reconnecting`, or `offline` after ten seconds. */
  state = $state<'connected' | 'reconnecting' | 'offline'>('reconnecting');
  /** Since when there is no server. */
  lost = $state(0);
  #source: EventSource | undefined;
  #hear = new Set<Hear>();
  #again = new Set<() => void>();
  #last = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Begins to listen, as whoever has signed in. */
  open(): void {
    this.close();
    const source = new EventSource(address('/events', { after: this.#last || undefined }));
    this.#source = source;
    source.onopen = () => this.#opened();
    source.onerror = () => this.#broke(source);
    for (const kind of KINDS) source.addEventListener(kind, (told) => this.#told(told));
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = undefined;
  }

  /** Hears what happens until what it returns is called. */
  on(hear: Hear): () => void {
    this.#hear.add(hear);
    return () => void this.#hear.delete(hear);
  }

  /** Is told when everything should be looked at again. */
  onAgain(look: () => void): () => void {
    this.#again.add(look);
    return () => void this.#again.delete(look);
  }

  #opened(): void {
    const before = this.lost;
    clearTimeout(this.#timer);
    this.state = 'connected';
    this.lost = 0;
    if (before) this.#lookAgain();
  }

  #broke(source: EventSource): void {
    if (!this.lost) {
      this.lost = Date.now();
      setTimeout(() => this.state !== 'connected' && (this.state = 'offline'), OFFLINE_MS);
    }
    if (this.state === 'connected') this.state = 'reconnecting';
    // Browsers come back by themselves, but not after every kind of failure.
    if (source.readyState === EventSource.CLOSED) {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.open(), AGAIN_MS);
    }
  }

  #told(told: MessageEvent<string>): void {
    const event = JSON.parse(told.data) as Event;
    this.#last = event.id;
    if (event.event === 'reset') this.#lookAgain();
    else for (const hear of this.#hear) hear(event);
  }

  #lookAgain(): void {
    for (const look of this.#again) look();
  }
}

export const events = new Events();
