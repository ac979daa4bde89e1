// The runs that a filter finds, newest first: fetched page by page as they come
// into view, and kept up to date by what happens.
import { api, Refusal } from '../../api/client';
import type { Run } from '../../api/schema';
import { asked } from '../../lib/filter';

/** Runs fetched at once. */
const PAGE = 100;

/** Pages whose runs are kept; the others are fetched again when they are seen. */
const KEPT = 40;

/** What happens is looked at together, this often at most. */
const EVERY_MS = 250;

/** So many runs that changed are fetched one by one, more with their pages. */
const FEW = 8;

/** How many new runs are counted before it is simply “more”. */
const FRESH = 100;

interface Page {
  /** What the server is asked with: the last run of the page before, where that
   * is known. */
  cursor: string | undefined;
  count: number;
  runs: Run[] | undefined;
  /** Something in it may have changed. */
  stale: boolean;
}

export class RunList {
  /** How many there are, as far as they were fetched. */
  count = $state(0);
  /** All that the filter finds were fetched. */
  whole = $state(false);
  /** How many it finds, and whether there are more than were counted. */
  total = $state.raw({ count: 0, more: false });
  error = $state.raw<Refusal>();
  loading = $state(true);
  /** New runs that are not shown, since the reader is elsewhere. */
  fresh = $state.raw<Run[]>([]);
  /** Grows when anything changed. */
  version = $state(0);
  /** New runs come in by themselves. */
  live = $state(true);
  /** The first page was asked for, and came or not. */
  readonly ready: Promise<void>;

  #pages: Page[] = [];
  /** The row with which each page begins. */
  #starts: number[] = [];
  #next: string | undefined;
  #fetching = new Set<Page | 'next'>();
  #stopped = new AbortController();
  #changed = new Set<string>();
  #anew = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #last = 0;

  constructor(
    readonly filter: string,
    /** Whether new runs may move what is shown. */
    private readonly atTop: () => boolean,
    /** Runs were put in above what is shown. */
    private readonly moved: (by: number) => void,
  ) {
    this.ready = this.#more();
  }

  stop(): void {
    this.#stopped.abort();
    clearTimeout(this.#timer);
  }

  /** The run in a row, if it is there. */
  at(index: number): Run | undefined {
    void this.version;
    const [page, from] = this.#page(index);
    return page?.runs?.[index - from];
  }

  /** The row of a run, if it is there. */
  index(id: string): number {
    void this.version;
    let from = 0;
    for (const page of this.#pages) {
      const at = page.runs?.findIndex((run) => run.command_id === id || run.short_id === id) ?? -1;
      if (at >= 0) return from + at;
      from += page.count;
    }
    return -1;
  }

  /** Fetches what comes into view, and a little ahead. */
  range(first: number, last: number): void {
    let from = 0;
    for (const page of this.#pages) {
      const seen = from < last + PAGE / 2 && from + page.count > first - PAGE / 2;
      if (seen && (!page.runs || page.stale)) void this.#again(page);
      from += page.count;
    }
    if (last + PAGE / 2 >= this.count) void this.#more();
    this.#forget(first);
  }

  /** Shows what is new. */
  showFresh(): void {
    const fresh = this.fresh;
    this.fresh = [];
    if (fresh.length >= FRESH) this.#restart();
    else this.#prepend(fresh);
    // They may have gone on while nobody saw them.
    if (this.#pages[0]) this.#pages[0].stale = true;
  }

  /** Something happened to a run; without one: anything may have. */
  happened(id: string | null, created: boolean): void {
    if (id) this.#changed.add(id);
    if (created || !id) this.#anew = true;
    if (!id) for (const page of this.#pages) page.stale = true;
    this.#soon();
  }

  #soon(): void {
    if (this.#timer) return;
    const wait = Math.max(0, this.#last + EVERY_MS - Date.now());
    this.#timer = setTimeout(() => void this.#look(), wait);
  }

  async #look(): Promise<void> {
    const [changed, anew] = [this.#changed, this.#anew];
    this.#changed = new Set();
    this.#anew = false;
    const known = [...changed].filter((id) => this.index(id) >= 0);
    // Who is among them, only the server can tell, where there is a filter.
    const head = this.#pages[0];
    if (head && this.filter && known.length < changed.size) head.stale = true;
    if (known.length > FEW || this.filter) this.#outdate(new Set(known));
    else await Promise.all(known.map((id) => this.#one(id)));
    this.version += 1;
    if (anew || !this.#pages.length) await this.#newest();
    this.#last = Date.now();
    this.#timer = undefined;
    if (this.#changed.size || this.#anew) this.#soon();
  }

  async #one(id: string): Promise<void> {
    const run = await api
      .get('/commands/{id}', { path: { id }, query: { cut: 'head:1' }, signal: this.#stopped.signal })
      .catch(() => undefined);
    const page = this.#pages.find(({ runs }) => runs?.some(({ command_id }) => command_id === id));
    if (!run || !page?.runs) return;
    page.runs = page.runs.map((old) => (old.command_id === id ? run : old));
    this.#counted();
  }

  #outdate(ids: Set<string>): void {
    for (const page of this.#pages) {
      if (page.runs?.some(({ command_id }) => ids.has(command_id))) page.stale = true;
    }
  }

  // What came after the newest that is known.
  async #newest(): Promise<void> {
    const newest = this.#pages.find(({ runs }) => runs?.length)?.runs?.[0];
    const head = (this.fresh[0] ?? newest)?.command_id;
    if (head === undefined) return this.#restart();
    let found = await this.#fetch(undefined, FRESH / 5);
    if (found?.runs.every((run) => run.command_id > head) && found.next) {
      found = await this.#fetch(undefined, FRESH);
    }
    if (!found) return;
    const newer = found.runs.filter((run) => run.command_id > head);
    if (!newer.length) return;
    const fresh = [...newer, ...this.fresh].slice(0, FRESH);
    if (!this.live || !this.atTop()) this.fresh = fresh;
    else if (newer.length === FRESH) this.#restart();
    else {
      this.fresh = [];
      this.#prepend(fresh);
    }
  }

  #prepend(found: Run[]): void {
    // Some may have come with their page meanwhile.
    const runs = found.filter(({ command_id }) => this.index(command_id) < 0);
    if (found.length && !runs.length) return;
    const head = this.#pages[0];
    if (!head?.runs || !runs.length) return this.#restart();
    const top = this.atTop();
    head.runs = [...runs, ...head.runs];
    head.count += runs.length;
    this.total = { ...this.total, count: this.total.count + runs.length };
    this.#counted();
    if (!top) this.moved(runs.length);
  }

  #restart(): void {
    this.#stopped.abort();
    this.#stopped = new AbortController();
    this.#fetching.clear();
    this.#pages = [];
    this.#next = undefined;
    this.whole = false;
    this.fresh = [];
    void this.#more();
  }

  async #more(): Promise<void> {
    if (this.whole || this.#fetching.has('next')) return;
    const cursor = this.#next;
    if (this.#pages.length && cursor === undefined) return;
    this.#fetching.add('next');
    const found = await this.#fetch(cursor, PAGE, true);
    this.#fetching.delete('next');
    if (!found) return;
    const { runs, next } = found;
    this.#pages.push({ cursor, count: runs.length, runs, stale: false });
    this.#next = next;
    this.whole = next === undefined;
    if (cursor === undefined && next !== undefined) this.#foresee();
    this.#counted();
  }

  // There is a place for all that were counted, so that any can be jumped to.
  #foresee(): void {
    for (let left = this.total.count - (this.#pages[0]?.count ?? 0); left > 0; left -= PAGE) {
      this.#pages.push({ cursor: undefined, count: Math.min(PAGE, left), runs: undefined, stale: false });
    }
    this.#next = undefined;
    this.whole = true;
  }

  async #again(page: Page): Promise<void> {
    if (this.#fetching.has(page)) return;
    this.#fetching.add(page);
    page.stale = false;
    const top = page.runs?.[0]?.command_id;
    const at = this.#pages.indexOf(page);
    const head = at === 0;
    const above = this.#pages[at - 1];
    if (above) page.cursor = above.runs?.at(-1)?.command_id ?? page.cursor;
    // Without the run above it, its place among all is what there is to go by.
    const skip = head || page.cursor ? 0 : (this.#starts[at] ?? 0) + this.fresh.length;
    const found = await this.#fetch(page.cursor, Math.max(PAGE, Math.min(500, page.count)), false, skip);
    this.#fetching.delete(page);
    if (!found) return;
    const below = this.#pages[at + 1];
    const after = below?.cursor;
    const next = below?.runs?.[0]?.command_id;
    page.runs = found.runs
      .filter(
        ({ command_id }) =>
          // New ones come in at the top in their own way.
          (!head || !top || command_id <= top || (this.live && this.atTop())) &&
          (after === undefined || command_id >= after) &&
          (next === undefined || command_id > next),
      )
      .slice(0, skip ? page.count : undefined);
    page.count = page.runs.length;
    this.#counted();
  }

  async #fetch(cursor: string | undefined, limit: number, count = false, skip = 0) {
    const { signal } = this.#stopped;
    try {
      const found = await api.get('/commands', {
        query: { ...asked(this.filter), limit, ...(cursor ? { cursor } : skip ? { skip } : { count }) },
        signal,
      });
      if (signal.aborted) return undefined;
      this.error = undefined;
      this.loading = false;
      if (found.count != null) this.total = { count: found.count, more: found.more ?? false };
      return { runs: found.commands, next: found.cursor ?? undefined };
    } catch (error) {
      if (signal.aborted) return undefined;
      if (!(error instanceof Refusal)) throw error;
      this.error = error;
      this.loading = false;
      return undefined;
    }
  }

  // Only so much is kept, and what is far away goes first.
  #forget(first: number): void {
    const kept = this.#pages.filter((page) => page.runs);
    if (kept.length <= KEPT) return;
    const here = this.#page(first)[0];
    const at = here ? this.#pages.indexOf(here) : 0;
    const far = this.#pages
      .map((page, index) => ({ page, away: Math.abs(index - at) }))
      .filter(({ page }) => page.runs)
      .sort((a, b) => b.away - a.away)[0];
    if (far) far.page.runs = undefined;
  }

  #page(index: number): [Page | undefined, number] {
    let [low, high] = [0, this.#pages.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#starts[middle]! + this.#pages[middle]!.count <= index) low = middle + 1;
      else high = middle;
    }
    return [this.#pages[low], this.#starts[low] ?? this.count];
  }

  #counted(): void {
    let from = 0;
    this.#starts = this.#pages.map(({ count }) => (from += count) - count);
    this.count = from;
    this.version += 1;
  }
}
