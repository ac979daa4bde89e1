// A terminal on the page. What is written, sized and begun anew comes out in the
// order in which it was said, however long the writing takes.
import { emulator, type Written } from './emulator';
import { measuring, type Measure, type Size } from './measure';

/** Begins anew, as an empty terminal. */
const RESET = '\x1bc';

interface Options {
  /** What it is, for those who cannot see it. */
  label: string;
  screenReader: boolean;
  /** What somebody types, while they may. */
  oninput: (data: string) => void;
}

/** Where a text was found. */
export interface Spot {
  line: number;
  column: number;
  length: number;
}

export class Screen {
  readonly measure: Measure;
  #term;
  #typing = false;

  constructor(host: HTMLElement, size: Size, { label, screenReader, oninput }: Options) {
    const fontFamily = getComputedStyle(host).fontFamily;
    this.measure = measuring(fontFamily);
    this.#term = emulator(size, { fontFamily, screenReader });
    this.#term.open(host);
    const field = this.#term.textarea!;
    field.setAttribute('aria-label', label);
    field.dataset.keys = 'own';
    // Nobody types before they have the keyboard; keys are the page's until then.
    field.disabled = true;
    // The cursor is not drawn before it was there once.
    field.dispatchEvent(new FocusEvent('focus'));
    field.dispatchEvent(new FocusEvent('blur'));
    this.#term.onData((data) => this.#typing && oninput(data));
    this.#term.onBinary((data) => this.#typing && oninput(data));
  }

  /** Empties it, gives it a size, and shows this. */
  begin(size: Size, data: Written): void {
    this.#term.write(RESET, () => this.#fit(size));
    this.#term.write(data);
  }

  /** Shows more. */
  write(data: Written, then?: () => void): void {
    this.#term.write(data, then);
  }

  resize(size: Size): void {
    this.#term.write('', () => this.#fit(size));
  }

  /** Whether keys go to the program. */
  set typing(typing: boolean) {
    this.#typing = typing;
    this.#term.options.disableStdin = !typing;
    this.#term.options.cursorBlink = typing;
    this.#term.textarea!.disabled = !typing;
  }

  set fontSize(fontSize: number) {
    if (this.#term.options.fontSize !== fontSize) this.#term.options.fontSize = fontSize;
  }

  focus(): void {
    this.#term.focus();
  }

  /** Types this as it would come from a clipboard. */
  paste(text: string): void {
    // What ends a pasted text must not be in it: all after it would be keys.
    // eslint-disable-next-line no-control-regex
    this.#term.paste(text.replace(/\x1b/g, ''));
  }

  get selection(): string {
    return this.#term.getSelection();
  }

  scrollLines(lines: number): void {
    this.#term.scrollLines(lines);
  }

  scrollPages(pages: number): void {
    this.#term.scrollPages(pages);
  }

  /** Shows what is shown now, and no more what was above. */
  scrollToEnd(): void {
    this.#term.scrollToBottom();
  }

  /** All lines that there are, the oldest first. */
  lines(): string[] {
    const buffer = this.#term.buffer.active;
    return Array.from(
      { length: buffer.length },
      (_, at) => buffer.getLine(at)?.translateToString(true) ?? '',
    );
  }

  /** Shows a text that was found; nothing hides it. */
  show({ line, column, length }: Spot): void {
    this.#term.select(column, line, length);
    this.#term.scrollToLine(Math.max(0, line - Math.floor(this.#term.rows / 2)));
  }

  clearSelection(): void {
    this.#term.clearSelection();
  }

  close(): void {
    this.#term.dispose();
  }

  #fit({ columns, rows }: Size): void {
    if (columns !== this.#term.cols || rows !== this.#term.rows) this.#term.resize(columns, rows);
  }
}
