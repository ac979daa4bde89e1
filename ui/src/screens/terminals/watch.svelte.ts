// Somebody at a terminal: what they see, and what they say.
import { socket } from '../../api/client';
import type { CommandView, ControlView, ProblemDocument } from '../../api/schema';
import type { Size } from '../../parts/terminal/measure';
import type { Screen } from '../../parts/terminal/screen';

/** Bytes of the offset before output. */
const OFFSET = 8;

/** After so much output the server hears that it came. */
const ACK_EVERY = 64 * 1024;

/** How long until a lost line is tried again, at first and at the most. */
const AGAIN_MS = 500;
const AGAIN_MOST_MS = 10_000;

type Told =
  | { type: 'snapshot'; offset: number; columns: number; rows: number; data: string; skipped: number }
  | { type: 'gap'; from: number; to: number }
  | { type: 'resize'; columns: number; rows: number }
  | ({ type: 'control'; yours: boolean } & ControlView)
  | { type: 'held'; text: string }
  | { type: 'around'; watching: number; hidden: boolean }
  | ({ type: 'error' } & ProblemDocument)
  | { type: 'exit'; run: CommandView };

export class Watch {
  /** How large it is; not known before the first screen. */
  size = $state.raw<Size>();
  control = $state.raw<ControlView>({ held_bytes: 0 });
  /** When the keyboard goes back by itself, in milliseconds since 1970. */
  until = $state<number>();
  /** Our keys go to the program. */
  typing = $state(false);
  /** We have asked for the keyboard. */
  taking = $state(false);
  /** What is typed is not shown. */
  hidden = $state(false);
  /** How many watch, we among them. */
  watching = $state(1);
  lost = $state(false);
  /** Bytes that we have not been shown. */
  skipped = $state(0);
  /** What the server said about what we did. */
  said = $state('');
  ended = $state.raw<CommandView>();
  /** How much fits into our window. */
  room: Size | undefined;

  #id: string;
  #me: string;
  #screen: Screen;
  #line: WebSocket | undefined;
  /** What was typed before the keyboard was ours. */
  #ahead = '';
  #acked = 0;
  #again = AGAIN_MS;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(id: string, me: string, screen: Screen) {
    this.#id = id;
    this.#me = me;
    this.#screen = screen;
    this.#open();
  }

  take(): void {
    if (this.typing || this.taking) return;
    this.taking = true;
    this.said = '';
    this.#say({ type: 'take', ...this.room });
  }

  give(note: string): void {
    if (!this.typing) return;
    this.typing = false;
    this.#say({ type: 'give', ...(note.trim() && { note }) });
  }

  type(data: string): void {
    if (this.typing) this.#say({ type: 'input', data });
    else if (this.taking) this.#ahead += data;
  }

  /** Goes on having the keyboard, without a key. */
  stay(): void {
    this.type('');
  }

  fit(room: Size): void {
    const same = room.columns === this.room?.columns && room.rows === this.room.rows;
    this.room = room;
    if (this.typing && !same) this.#say({ type: 'resize', ...room });
  }

  close(): void {
    clearTimeout(this.#timer);
    this.give('');
    const line = this.#line;
    this.#line = undefined;
    line?.close();
  }

  #open(): void {
    const line = socket(`/terminals/${encodeURIComponent(this.#id)}/stream`);
    this.#line = line;
    line.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (line === this.#line) this.#hear(data);
    };
    // Whoever is quicker than the line has asked already.
    line.onopen = () => this.taking && !this.lost && this.#say({ type: 'take', ...this.room });
    line.onclose = () => line === this.#line && this.#broke();
  }

  #broke(): void {
    if (this.ended) return;
    this.lost = true;
    // The keyboard stays ours for a while; whoever comes back in time goes on.
    this.taking ||= this.typing;
    this.typing = false;
    this.control = { held_bytes: 0 };
    this.#timer = setTimeout(() => this.#open(), this.#again);
    this.#again = Math.min(this.#again * 2, AGAIN_MOST_MS);
  }

  #hear(data: string | ArrayBuffer): void {
    if (typeof data === 'string') return this.#told(JSON.parse(data) as Told);
    const offset = Number(new DataView(data).getBigUint64(0));
    const bytes = new Uint8Array(data, OFFSET);
    const end = offset + bytes.length;
    // When it is shown, not when it came: who is slow is sent less.
    this.#screen.write(bytes, () => this.#came(end));
  }

  #came(offset: number): void {
    if (offset - this.#acked < ACK_EVERY) return;
    this.#acked = offset;
    this.#say({ type: 'ack', offset });
  }

  #told(told: Told): void {
    switch (told.type) {
      case 'snapshot':
        this.#found(told);
        break;
      case 'resize':
        this.size = { columns: told.columns, rows: told.rows };
        this.#screen.resize(this.size);
        break;
      case 'control':
        this.#turn(told);
        break;
      case 'gap':
        this.skipped += told.to - told.from;
        break;
      case 'around':
        this.hidden = told.hidden;
        this.watching = told.watching;
        break;
      case 'held':
        this.said = told.text;
        break;
      case 'error':
        this.taking = false;
        this.#ahead = '';
        this.said = told.detail;
        break;
      case 'exit':
        this.typing = this.taking = false;
        this.ended = told.run;
    }
  }

  #found(told: Told & { type: 'snapshot' }): void {
    this.size = { columns: told.columns, rows: told.rows };
    this.#screen.begin(this.size, told.data);
    this.#acked = told.offset;
    this.skipped += this.lost ? 0 : told.skipped;
    this.#again = AGAIN_MS;
    if (!this.lost) return;
    this.lost = false;
    if (!this.taking) return;
    // Only what is still ours: who was away too long has to ask again.
    this.taking = this.control.taken_by === this.#me;
    if (this.taking) this.#say({ type: 'take', ...this.room });
  }

  #turn(told: Told & { type: 'control' }): void {
    this.control = told;
    const left = told.seconds_left;
    this.until = typeof left === 'number' ? Date.now() + left * 1000 : undefined;
    this.typing = told.yours;
    if (!told.yours) return;
    this.taking = false;
    if (this.#ahead) this.type(this.#ahead);
    this.#ahead = '';
  }

  #say(message: object): void {
    if (this.#line?.readyState === WebSocket.OPEN) this.#line.send(JSON.stringify(message));
  }
}
