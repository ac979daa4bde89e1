// One run, as it is now: looked at again when something happens to it, and, as
// long as it runs, with its output and what it takes up.
import { api, fetchRaw, Refusal } from '../../api/client';
import type { CommandView } from '../../api/schema';
import { events } from '../../lib/events.svelte';

/** What a run takes up is told each second. */
const LOAD_MS = 1000;

/** New output is looked at together, this often at most. */
const OUTPUT_MS = 120;

export class Watch {
  run = $state.raw<CommandView>();
  error = $state.raw<Refusal>();
  #stopped = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #waiting: AbortController | undefined;
  #looking: Promise<void> | undefined;
  #again = false;
  #off: (() => void)[];

  constructor(readonly id: string) {
    const mine = (told: string | null) => told !== null && told === (this.run?.command_id ?? id);
    this.#off = [
      events.on(({ command_id }) => mine(command_id) && void this.look()),
      events.onAgain(() => void this.look()),
    ];
    void this.look();
  }

  stop(): void {
    this.#stopped.abort();
    this.#waiting?.abort();
    clearTimeout(this.#timer);
    for (const off of this.#off) off();
  }

  /** Looks at it now; who asks while it is looked at has it looked at again. */
  look(): Promise<void> {
    if (this.#looking) {
      this.#again = true;
      return this.#looking;
    }
    this.#looking = this.#fetch().finally(() => {
      this.#looking = undefined;
      if (this.#again && !this.#stopped.signal.aborted) {
        this.#again = false;
        void this.look();
      }
    });
    return this.#looking;
  }

  async #fetch(): Promise<void> {
    const { signal } = this.#stopped;
    try {
      const run = await api.get('/commands/{id}', { path: { id: this.id }, signal });
      this.run = run;
      this.error = undefined;
      if (run.open || run.state === 'running') this.#wait(run);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      this.error = error;
    }
  }

  // Until there is more output, or a second has passed. The first byte that is
  // not known yet is asked for, which comes when it is there: so nobody sends
  // a flood that nobody could read.
  #wait(run: CommandView): void {
    clearTimeout(this.#timer);
    this.#waiting?.abort();
    if (document.hidden) {
      document.addEventListener('visibilitychange', () => void this.look(), { once: true });
      return;
    }
    const waiting = new AbortController();
    this.#waiting = waiting;
    const began = performance.now();
    const go = (after: number) => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => void this.look(), after);
    };
    go(LOAD_MS);
    const query = { from: run.output.bytes, limit: 1, follow: 'ended' };
    fetchRaw(`/commands/${run.command_id}/output/raw`, query, waiting.signal)
      .then(async (answer) => {
        if ((await answer.arrayBuffer()).byteLength) go(Math.max(0, OUTPUT_MS - (performance.now() - began)));
      })
      .catch(() => {
        // The second passes anyway, and whoever is gone needs no more.
      });
  }
}
