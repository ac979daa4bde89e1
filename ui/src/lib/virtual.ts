// Which rows of a long list are on the screen, when most are equally high and
// only those that were measured may differ.

/**
 * Higher than this no element is made: browsers cut at 17 to 33 million pixels.
 * What is longer is scrolled proportionally.
 */
export const MOST_PX = 8_000_000;

export class Heights {
  #extra = new Map<number, number>();
  #sorted: { at: number; before: number; extra: number }[] | undefined;

  constructor(readonly row: number) {}

  /** Says how high a row is. Returns whether it was thought otherwise. */
  measured(index: number, height: number): boolean {
    const extra = height - this.row;
    if (Math.abs(extra - (this.#extra.get(index) ?? 0)) < 0.5) return false;
    if (Math.abs(extra) < 0.5) this.#extra.delete(index);
    else this.#extra.set(index, extra);
    this.#sorted = undefined;
    return true;
  }

  /** All rows are as high as any again. */
  forget(): void {
    this.#extra.clear();
    this.#sorted = undefined;
  }

  /** Where a row begins; of the row after the last: how high all are. */
  top(index: number): number {
    const sorted = this.#all();
    let low = 0;
    let high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle]!.at < index) low = middle + 1;
      else high = middle;
    }
    const last = sorted[low - 1];
    return index * this.row + (last ? last.before + last.extra : 0);
  }

  /** The row at a place. */
  at(y: number, count: number): number {
    let low = 0;
    let high = Math.max(0, count - 1);
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.top(middle) <= y) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #all() {
    if (!this.#sorted) {
      let before = 0;
      this.#sorted = [...this.#extra]
        .sort((a, b) => a[0] - b[0])
        .map(([at, extra]) => {
          const one = { at, before, extra };
          before += extra;
          return one;
        });
    }
    return this.#sorted;
  }
}

/** Between where one has scrolled to and what that shows. */
export class Scale {
  /** How high the element is. */
  readonly height: number;
  readonly #ratio: number;

  constructor(
    readonly whole: number,
    readonly view: number,
    most = MOST_PX,
  ) {
    this.height = Math.min(whole, Math.max(most, view));
    const can = this.height - view;
    this.#ratio = can > 0 ? (whole - view) / can : 1;
  }

  /** More is shown than can be scrolled to pixel by pixel. */
  get scaled(): boolean {
    return this.height < this.whole;
  }

  shown(scrolled: number): number {
    return scrolled * this.#ratio;
  }

  scrolled(shown: number): number {
    return shown / this.#ratio;
  }
}
