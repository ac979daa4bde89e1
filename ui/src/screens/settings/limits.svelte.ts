// Limits of the whole server, as they are changed on a page.
import { api } from '../../api/client';
import type { ServerLimits } from '../../api/schema';
import { attempt } from '../../lib/attempt';
import { load } from '../../lib/load.svelte';
import { toasts } from '../../lib/toast.svelte';
import { text } from './text';

export type Limit = Exclude<keyof ServerLimits, 'always'>;

/** To be made while a component is set up. */
export class Limits {
  readonly loaded = load((signal) => api.get('/limits', { signal }));
  /** What was typed; what was not is as the server has it. */
  typed = $state<Partial<Record<Limit, number | null>>>({});
  always = $state<boolean>();
  failed = $state('');
  saving = $state(false);

  changed = $derived.by(() => this.always !== undefined || Object.keys(this.typed).length > 0);

  value(limit: Limit): number | undefined {
    return (limit in this.typed ? this.typed[limit] : this.loaded.value?.now[limit]) ?? undefined;
  }

  /** An empty field is what the configuration file says. */
  type(limit: Limit, text: string): void {
    const value = text.trim() === '' ? null : Number(text);
    if (value === this.loaded.value?.now[limit]) delete this.typed[limit];
    else this.typed[limit] = value;
  }

  reset(): void {
    this.typed = {};
    this.always = undefined;
    this.failed = '';
  }

  async save(): Promise<void> {
    const set = this.loaded.value?.set ?? {};
    const body = { ...set, ...this.typed, ...(this.always !== undefined && { always: this.always }) };
    this.saving = true;
    this.failed = await attempt('save the limits', () => api.put('/limits', { body: body as ServerLimits }));
    this.saving = false;
    if (this.failed) return;
    await this.loaded.look();
    this.reset();
    toasts.show(text.saved);
  }
}
