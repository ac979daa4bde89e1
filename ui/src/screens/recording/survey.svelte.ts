// A recording, read through once: its lines, and when nothing happened.
import { IDLE } from './player.svelte';
import { events } from './reel';
import { Transcript, type Entry } from './transcript';

/** A time in which nothing happened. */
export interface Pause {
  from: number;
  to: number;
}

/** So much is shown at a time while it is read. */
const SHOWN_EVERY_MS = 500;

export class Survey {
  entries = $state.raw<Entry[]>([]);
  pauses = $state.raw<Pause[]>([]);
  /** How far it is, in seconds. */
  time = $state(0);
  done = $state(false);
  failed = $state.raw<unknown>();
  #begun = false;
  #stop = new AbortController();

  constructor(
    private readonly id: string,
    private readonly total: number,
  ) {}

  /** Reads it, unless that was begun. */
  begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    this.#read().catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.failed = error;
    });
  }

  close(): void {
    this.#stop.abort();
  }

  async #read(): Promise<void> {
    const { emulator } = await import('../../parts/terminal/emulator');
    const transcript = new Transcript(emulator({ columns: 80, rows: 24 }));
    const pauses: Pause[] = [];
    const note = (from: number, to: number) => {
      if (to - from > IDLE) pauses.push({ from, to });
    };
    let last = 0;
    let shown = performance.now();
    for await (const event of events(this.id, this.#stop.signal)) {
      if (!('kind' in event)) {
        transcript.resize(event.size);
        continue;
      }
      note(last, event.time);
      last = event.time;
      await transcript.feed(event);
      if (performance.now() - shown < SHOWN_EVERY_MS) continue;
      shown = performance.now();
      this.time = last;
      this.entries = transcript.entries.slice();
    }
    note(last, this.total);
    transcript.finish();
    this.entries = transcript.entries;
    this.pauses = pauses;
    this.time = this.total;
    this.done = true;
  }
}
