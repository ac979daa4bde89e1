// The events of a recording, read as far ahead as they are needed.
import { lines } from '../../api/client';
import type { Size } from '../../parts/terminal/measure';

/** Something that happened in a terminal. */
export type Happened =
  | { time: number; kind: 'output'; text: string }
  | { time: number; kind: 'resize'; size: Size }
  | { time: number; kind: 'mark'; text: string };

/** What is known at the beginning. */
export interface Header {
  size: Size;
  /** When it was made, in seconds since 1970. */
  timestamp: number | undefined;
  title: string | undefined;
}

/** Characters that are read before they are needed. */
const AHEAD = 1024 * 1024;

/** Reads the first line of an asciicast. */
export function header(line: string): Header {
  const read = JSON.parse(line) as { width: number; height: number; timestamp?: number; title?: string };
  const { width, height, timestamp, title } = read;
  return { size: { columns: width, rows: height }, timestamp, title };
}

/** Reads any other line; what concerns nobody is left out. */
export function happened(line: string): Happened | undefined {
  if (!line.startsWith('[')) return undefined;
  const [time, code, data] = JSON.parse(line) as [number, string, string];
  if (code === 'o') return { time, kind: 'output', text: data };
  if (code === 'm') return { time, kind: 'mark', text: data };
  const [columns, rows] = data.split('x').map(Number);
  if (code === 'r' && columns && rows) return { time, kind: 'resize', size: { columns, rows } };
  return undefined;
}

/** Reads all events of a recording, one after the other. */
export async function* events(id: string, signal: AbortSignal): AsyncGenerator<Header | Happened> {
  let first = true;
  for await (const line of lines(path(id), {}, signal)) {
    const event = first ? header(line) : happened(line);
    first = false;
    if (event) yield event;
  }
}

/** A recording from a time on: first the screen as it was then. */
export class Reel {
  /** What was read and not taken, in order. */
  readonly ready: Happened[] = [];
  header: Header | undefined;
  /** All was read. */
  over = false;
  /** It could not be read. */
  failed: unknown;
  /** The time of the last event that was read. */
  read = 0;
  #ahead = 0;
  #stop = new AbortController();
  #wake: (() => void) | undefined;

  /** `told` hears whenever something was read. */
  constructor(
    id: string,
    readonly from: number,
    private readonly told: () => void,
  ) {
    this.#read(id, from).catch((error: unknown) => {
      if (this.#stop.signal.aborted) return;
      this.failed = error;
      this.told();
    });
  }

  /** Takes the next event if it happens no later than a time. */
  take(until: number): Happened | undefined {
    const next = this.ready[0];
    if (!next || next.time > until) return undefined;
    this.ready.shift();
    this.#ahead -= weight(next);
    if (this.#ahead < AHEAD / 2) this.#wake?.();
    return next;
  }

  close(): void {
    this.#stop.abort();
    this.#wake?.();
  }

  async #read(id: string, from: number): Promise<void> {
    const query = from > 0 ? { at: from } : {};
    for await (const line of lines(path(id), query, this.#stop.signal)) {
      if (!this.header) this.header = header(line);
      else this.#keep(happened(line));
      this.told();
      if (this.#ahead > AHEAD) await new Promise<void>((wake) => (this.#wake = wake));
    }
    this.over = true;
    this.told();
  }

  #keep(event: Happened | undefined): void {
    if (!event) return;
    // Time never goes back, whatever a file says.
    event.time = this.read = Math.max(event.time, this.read);
    this.ready.push(event);
    this.#ahead += weight(event);
  }
}

function path(id: string): string {
  return `/commands/${encodeURIComponent(id)}/recording`;
}

function weight(event: Happened): number {
  return event.kind === 'output' ? event.text.length : 1;
}
