// Keeps keys and clicks that were meant for something else from deciding.

/** How long nothing else may have happened before a key or click counts. */
export const QUIET_MS = 400;

export class Guard {
  #restarted = -Infinity;
  #moved = -Infinity;
  #keyWasQuiet = false;

  constructor(private readonly clock: () => number = () => performance.now()) {}

  /** What is shown has changed, or the window came back: keys wait anew. */
  restart(): void {
    this.#restarted = this.clock();
  }

  /** What is under the pointer has moved: clicks wait anew. */
  moved(): void {
    this.#moved = this.clock();
  }

  /** A key was pressed, whatever for: must hear of every one, first. */
  pressed(repeated: boolean): void {
    this.#keyWasQuiet = !repeated && this.#quietSince(this.#restarted);
    this.restart();
  }

  /** Whether an event may decide something. */
  admits(event: Event): boolean {
    if (event instanceof MouseEvent && event.detail > 0) return this.#quietSince(this.#moved);
    // By a key, or by what reads the page aloud, which presses none.
    return this.#keyWasQuiet || this.#quietSince(this.#restarted);
  }

  #quietSince(then: number): boolean {
    return this.clock() - then >= QUIET_MS;
  }
}

export const guard = new Guard();
