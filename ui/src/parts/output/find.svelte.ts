// Searching a run's output, on the server.
import { api, Refusal } from '../../api/client';

/** Matches fetched at once; more are there for the asking. */
const AT_ONCE = 1000;

export class Find {
  /** Numbers of the lines that match. */
  lines = $state.raw<number[]>([]);
  more = $state(false);
  busy = $state(false);
  at = $state(-1);
  wrong = $state('');
  #text = '';
  #running: AbortController | undefined;

  constructor(private readonly id: string) {}

  get current(): number | undefined {
    return this.lines[this.at];
  }

  /** Looks for a text as it is; begins at the first match from a line on. */
  async look(text: string, from: number): Promise<void> {
    this.#running?.abort();
    this.#text = text;
    this.lines = [];
    this.at = -1;
    this.more = false;
    this.wrong = '';
    if (!text) return;
    await this.#fetch(1);
    const after = this.lines.findIndex((line) => line >= from);
    if (this.lines.length) this.at = Math.max(0, after);
  }

  async step(by: 1 | -1): Promise<void> {
    if (!this.lines.length) return;
    if (by > 0 && this.at === this.lines.length - 1 && this.more) {
      await this.#fetch(this.lines.at(-1)! + 1);
    }
    this.at = (this.at + by + this.lines.length) % this.lines.length;
  }

  stop(): void {
    this.#running?.abort();
  }

  async #fetch(from: number): Promise<void> {
    const running = new AbortController();
    this.#running = running;
    this.busy = true;
    try {
      const found = await api.get('/commands/{id}/output/find', {
        path: { id: this.id },
        query: { q: `(?i)${literal(this.#text)}`, from, limit: AT_ONCE },
        signal: running.signal,
      });
      if (running.signal.aborted) return;
      this.lines = [...this.lines, ...found.lines.map(({ line }) => line)];
      this.more = found.more;
    } catch (error) {
      if (running.signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      this.wrong = error.message;
    } finally {
      if (this.#running === running) this.busy = false;
    }
  }
}

/** The text as a regular expression that matches nothing else. */
function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|#&~\-]/g, '\\$&');
}
