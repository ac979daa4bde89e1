// Plays a recording: what is shown when.
import type { Size } from '../../parts/terminal/measure';
import type { Screen } from '../../parts/terminal/screen';
import { Reel } from './reel';

export const SPEEDS = [0.5, 1, 2, 4, 8, 16];

/** A longer pause is cut to this, if pauses are skipped. */
export const IDLE = 2;

/** Characters that are written before the page is drawn again. */
const STEP = 256 * 1024;

/** While it plays, the mark before is not the one that was just gone to. */
const JUST = 1;

/** Whoever put the machine to sleep has seen nothing since. */
const LONGEST = 1;

export class Player {
  /** In seconds from the beginning. */
  time = $state(0);
  playing = $state(false);
  speed = $state(1);
  skipIdle = $state(true);
  size = $state.raw<Size>({ columns: 80, rows: 24 });
  /** What is shown is what was shown at that time. */
  there = $state(false);
  failed = $state.raw<unknown>();

  #screen: Screen;
  #id: string;
  #reel: Reel;
  /** Something of this reel is on the screen. */
  #begun = false;
  /** When something happened last, or where somebody went. */
  #since = 0;
  #frame = 0;
  #drawn = 0;

  constructor(
    id: string,
    readonly total: number,
    screen: Screen,
    at: number,
  ) {
    this.#id = id;
    this.#screen = screen;
    this.#reel = this.#from(Math.min(at, total));
    this.time = this.#since = this.#reel.from;
  }

  get over(): boolean {
    return this.time >= this.total;
  }

  toggle(): void {
    if (this.over && !this.playing) this.seek(0);
    this.playing = !this.playing;
    if (this.playing) this.#next();
  }

  seek(to: number): void {
    const time = Math.min(Math.max(0, to), this.total);
    const ahead = time >= this.time && (this.#reel.over || this.#reel.read > time);
    this.time = this.#since = time;
    if (!ahead) {
      this.#reel.close();
      this.#reel = this.#from(time);
    }
    this.there = false;
    this.#next();
  }

  faster(by: 1 | -1): void {
    const at = SPEEDS.indexOf(this.speed) + by;
    this.speed = SPEEDS[Math.min(Math.max(at, 0), SPEEDS.length - 1)]!;
  }

  close(): void {
    cancelAnimationFrame(this.#frame);
    this.#reel.close();
  }

  #from(time: number): Reel {
    this.#begun = false;
    this.there = false;
    return new Reel(this.#id, time, () => !this.there && this.#next());
  }

  #next(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame((now) => this.#draw(now));
  }

  #draw(now: number): void {
    const passed = Math.min((now - this.#drawn) / 1000, LONGEST);
    this.#drawn = now;
    if (this.#reel.failed) {
      this.failed = this.#reel.failed;
      this.playing = false;
      return;
    }
    if (this.playing && this.there) this.#advance(passed * this.speed);
    this.#show();
    if (this.over && this.there) this.playing = false;
    if (this.playing || (!this.there && this.#reel.ready.length)) this.#next();
  }

  #advance(by: number): void {
    const next = this.#reel.ready[0]?.time ?? (this.#reel.over ? this.total : this.time);
    this.time = Math.min(this.time + by, this.total);
    const waited = this.time >= this.#since + IDLE;
    if (this.skipIdle && waited && next > this.time) this.time = next;
  }

  /** Shows what is due, or as much of it as can be shown at once. */
  #show(): void {
    if (!this.#reel.header) return;
    if (!this.#begun) {
      this.#begun = true;
      this.#fit(this.#reel.header.size);
      this.#screen.begin(this.size, '');
    }
    let text = '';
    for (let event = this.#reel.take(this.time); event; event = this.#reel.take(this.time)) {
      this.#since = Math.max(this.#since, event.time);
      if (event.kind === 'output') text += event.text;
      else if (event.kind === 'resize') {
        this.#screen.write(text);
        text = '';
        this.#fit(event.size);
        this.#screen.resize(event.size);
      }
      if (text.length > STEP) break;
    }
    this.#screen.write(text);
    this.there = text.length <= STEP && (this.#reel.over || this.#reel.ready.length > 0);
  }

  #fit(size: Size): void {
    this.size = size;
  }
}

/** The mark after a time, or before it. */
export function markFrom<T extends { time: number }>(
  marks: T[],
  time: number,
  next: boolean,
  playing: boolean,
): T | undefined {
  if (next) return marks.find((mark) => mark.time > time);
  const before = time - (playing ? JUST : 0);
  return marks.findLast((mark) => mark.time < before);
}
