// Keys that are hard to press, and what terminals send for them.

export interface ExtraKey {
  label: string;
  data: string;
}

const ESC = '\x1b';

/** For the menu of whoever types with a keyboard. */
export const EXTRA: ExtraKey[] = [
  { label: 'Ctrl C', data: '\x03' },
  { label: 'Ctrl D', data: '\x04' },
  { label: 'Ctrl Z', data: '\x1a' },
  { label: 'Tab', data: '\t' },
  { label: 'Esc', data: ESC },
  { label: '↑', data: `${ESC}[A` },
  { label: '↓', data: `${ESC}[B` },
  { label: '←', data: `${ESC}[D` },
  { label: '→', data: `${ESC}[C` },
];

/** What a program can be told, the mildest first. */
export const SIGNALS = ['INT', 'HUP', 'TERM', 'USR1', 'USR2', 'STOP', 'CONT', 'KILL'];

/** A letter with Ctrl held; itself if there is no such key. */
export function control(letter: string): string {
  const code = letter.toUpperCase().charCodeAt(0);
  return letter.length === 1 && code >= 0x40 && code < 0x60
    ? String.fromCharCode(code - 0x40)
    : letter;
}

/** How long the second of two Esc may take. */
export const ESC_MS = 400;

/** Tells a second Esc, soon after the first, from one that is the program's. */
export class DoubleEsc {
  #last = -Infinity;

  /** Hears of what is typed. Returns whether it was the second. */
  typed(data: string, now: number): boolean {
    const second = data === ESC && now - this.#last <= ESC_MS;
    this.#last = data === ESC && !second ? now : -Infinity;
    return second;
  }
}
