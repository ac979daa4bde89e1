// Stopping new work at once, and letting it go on.
import { api, Refusal } from '../api/client';
import type { PauseView } from '../api/schema';
import { events } from '../lib/events.svelte';
import { toasts } from '../lib/toast.svelte';
import { text } from '../text';

class Pausing {
  list = $state.raw<PauseView[]>([]);
  /** The pause of everything, if there is one. */
  all = $derived(this.list.find((pause) => !pause.principal));

  constructor() {
    events.onAgain(() => void this.look());
    events.on(({ event }) => {
      if (event.startsWith('principal.')) void this.look();
    });
  }

  /** Looks what is paused; without the server, what is known stays. */
  async look(): Promise<void> {
    const told = await api.get('/pauses').catch(() => undefined);
    if (told) this.list = told.pauses;
  }

  pause(principal?: string): Promise<void> {
    return this.#change('pause', () => api.post('/pause', { body: principal ? { principal } : {} }));
  }

  resume(principal?: string): Promise<void> {
    return this.#change('resume', () => api.post('/resume', { body: principal ? { principal } : {} }));
  }

  async #change(what: string, change: () => Promise<unknown>): Promise<void> {
    try {
      await change();
      await this.look();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      toasts.show(text.couldNot(what, error));
    }
  }
}

export const pausing = new Pausing();
