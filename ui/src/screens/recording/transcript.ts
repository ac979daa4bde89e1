// What a recording showed, line by line with times: an emulator, which nobody
// sees, makes text of what was written. Of a program that takes the whole screen
// there is what stood still for a while.
import type { Terminal } from '@xterm/xterm';
import type { Size } from '../../parts/terminal/measure';
import type { Happened } from './reel';

export interface Entry {
  time: number;
  text: string;
  /** It says what happened, and was not shown. */
  mark: boolean;
}

/** What a program shows for so long, somebody may have read. */
const STILL = 2;

/** Lines of one paragraph that are looked at together. */
const JOINED = 50;

export class Transcript {
  readonly entries: Entry[] = [];
  #term: Terminal;
  #time = 0;
  #told = new Set<string>();

  constructor(term: Terminal) {
    this.#term = term;
    term.onLineFeed(() => this.#line());
    term.buffer.onBufferChange(() => this.#told.clear());
  }

  resize(size: Size): void {
    this.#term.resize(size.columns, size.rows);
  }

  /** Takes the next event, and returns when all of it is done. */
  async feed(event: Happened): Promise<void> {
    if (this.#alternate && event.time - this.#time >= STILL) this.#look();
    this.#time = event.time;
    if (event.kind === 'mark') this.#put(event.text, true);
    else if (event.kind === 'resize') this.resize(event.size);
    else {
      // What is about to be left is looked at before it is gone.
      for (const piece of event.text.split(/(?=\x1b\[\?(?:1049|1047|47)[hl])/)) {
        if (this.#alternate && /^\x1b\[\?\d+l/.test(piece)) this.#look();
        await new Promise<void>((done) => this.#term.write(piece, done));
      }
    }
  }

  /** Takes the line on which the cursor is, and what stands still. */
  finish(): void {
    if (this.#alternate) this.#look();
    else this.#paragraph(this.#row);
    this.#term.dispose();
  }

  get #alternate(): boolean {
    return this.#term.buffer.active.type === 'alternate';
  }

  get #row(): number {
    const { baseY, cursorY } = this.#term.buffer.active;
    return baseY + cursorY;
  }

  #line(): void {
    if (!this.#alternate) this.#paragraph(this.#row - 1);
  }

  /** Tells a line, with those before it that did not fit into one. */
  #paragraph(last: number): void {
    const buffer = this.#term.buffer.active;
    let first = last;
    while (first > last - JOINED && buffer.getLine(first)?.isWrapped) first -= 1;
    let text = '';
    for (let row = first; row <= last; row += 1) {
      text += buffer.getLine(row)?.translateToString(row === last) ?? '';
    }
    if (text.trim()) this.#put(text, false);
  }

  #look(): void {
    const buffer = this.#term.buffer.active;
    const shown = new Set<string>();
    for (let row = 0; row < this.#term.rows; row += 1) {
      const text = buffer.getLine(buffer.baseY + row)?.translateToString(true) ?? '';
      if (!text.trim()) continue;
      if (!this.#told.has(text)) this.#put(text, false);
      shown.add(text);
    }
    this.#told = shown;
  }

  #put(text: string, mark: boolean): void {
    this.entries.push({ time: this.#time, text, mark });
  }
}

/** Returns the entries that have a text, whatever its case. */
export function findIn(entries: Entry[], wanted: string, most: number): Entry[] {
  const lower = wanted.trim().toLowerCase();
  const found: Entry[] = [];
  if (!lower) return found;
  for (const entry of entries) {
    if (entry.text.toLowerCase().includes(lower)) found.push(entry);
    if (found.length === most) break;
  }
  return found;
}
