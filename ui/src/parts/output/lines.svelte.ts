// The lines of a run's output, fetched by number as they come into view.
import { api, Refusal } from '../../api/client';
import type { LeftOutView, LineView, SpanView } from '../../api/schema';

/** Lines fetched at once. */
const CHUNK = 200;

/** Chunks that are kept. */
const KEPT = 30;

interface Chunk {
  lines: Map<number, LineView>;
  /** It was the end when it was fetched: there may be more now. */
  end: boolean;
}

/** One row of a view of output. */
export interface OutputRow {
  text: string;
  stream: string;
  /** Its number, where it has one. */
  line?: number;
  /** Milliseconds after the start. */
  ms?: number;
  /** It is longer than this. */
  cut?: boolean;
  /** Where it does not look as usual. */
  spans?: SpanView[];
}

export class Lines {
  /** How many lines there are. */
  count = $state(0);
  /** Grows when lines came. */
  version = $state(0);
  error = $state.raw<Refusal>();
  /** What the agent was not shown. */
  left = $state.raw<LeftOutView[]>([]);

  #chunks = new Map<number, Chunk>();
  #fetching = new Set<number>();
  #again = new Set<number>();
  #stopped = new AbortController();

  constructor(
    readonly id: string,
    /** As a person would see it, as the agent saw it, or every byte of it. */
    readonly view: 'full' | 'agent' | 'raw',
  ) {}

  stop(): void {
    this.#stopped.abort();
  }

  at(index: number): OutputRow | undefined {
    void this.version;
    const chunk = this.#chunks.get(Math.floor(index / CHUNK));
    if (!chunk) return undefined;
    return chunk.lines.get(index + 1) ?? { text: '', stream: '', line: index + 1 };
  }

  /** Fetches what comes into view. */
  range(first: number, last: number): void {
    for (let at = Math.floor(first / CHUNK); at <= Math.floor(Math.max(first, last - 1) / CHUNK); at++) {
      const chunk = this.#chunks.get(at);
      const full = (at + 1) * CHUNK <= this.count;
      const short = chunk?.end && (full || chunk.lines.size < this.count - at * CHUNK);
      if ((!chunk || short) && !this.#fetching.has(at)) void this.#fetch(at);
    }
  }

  /** So many newlines there have been; the last line may have none yet. */
  async grown(newlines: number): Promise<void> {
    if (this.view === 'agent') return this.#fetch(0);
    await this.#fetch(Math.floor(newlines / CHUNK));
    if (newlines > this.count) this.count = newlines;
  }

  async #fetch(at: number): Promise<void> {
    if (this.#fetching.has(at)) {
      // What was asked for before may be older than what is wanted.
      this.#again.add(at);
      return;
    }
    this.#fetching.add(at);
    const { signal } = this.#stopped;
    try {
      const found = await api.get('/commands/{id}/output', {
        path: { id: this.id },
        query: { from: at * CHUNK + 1, lines: CHUNK, ...(this.view !== 'raw' && { view: this.view }) },
        signal,
      });
      const lines = new Map(found.lines.map((line) => [line.line, line]));
      this.#chunks.delete(at);
      this.#chunks.set(at, { lines, end: !lines.has((at + 1) * CHUNK) });
      this.count = Math.max(this.count, found.total, found.lines.at(-1)?.line ?? 0);
      this.error = undefined;
      if (found.left_out) this.left = found.left_out;
      this.version += 1;
      // The oldest go first, which are far away by now.
      for (const old of this.#chunks.keys()) {
        if (this.#chunks.size <= KEPT) break;
        this.#chunks.delete(old);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      this.error = error;
    } finally {
      this.#fetching.delete(at);
      if (this.#again.delete(at) && !signal.aborted) void this.#fetch(at);
    }
  }
}
