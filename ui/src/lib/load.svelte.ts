// Something that is fetched, kept, and fetched again when it may have changed.
import { Refusal } from '../api/client';
import { events, type Event } from './events.svelte';

export class Loaded<T> {
  value = $state.raw<T>();
  error = $state.raw<Refusal>();
  #fetch: (signal: AbortSignal) => Promise<T>;
  #running: AbortController | undefined;

  constructor(fetch: (signal: AbortSignal) => Promise<T>) {
    this.#fetch = fetch;
  }

  /** Fetches it; what was asked for before is not waited for any more. */
  async look(): Promise<void> {
    this.#running?.abort();
    const running = new AbortController();
    this.#running = running;
    try {
      const value = await this.#fetch(running.signal);
      if (running.signal.aborted) return;
      this.value = value;
      this.error = undefined;
    } catch (error) {
      if (running.signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      this.error = error;
    }
  }

  stop(): void {
    this.#running?.abort();
  }
}

/**
 * Fetches something now, and again when the server comes back or an event says
 * that it may have changed. To be called while a component is set up; what
 * `fetch` reads of the page's state makes it be fetched anew.
 */
export function load<T>(
  fetch: (signal: AbortSignal) => Promise<T>,
  changes: (event: Event) => boolean = () => false,
): Loaded<T> {
  const loaded = new Loaded(fetch);
  $effect(() => {
    void loaded.look();
    const again = events.onAgain(() => void loaded.look());
    const on = events.on((event) => {
      if (changes(event)) void loaded.look();
    });
    return () => {
      again();
      on();
      loaded.stop();
    };
  });
  return loaded;
}
