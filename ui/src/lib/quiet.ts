// Hours in which a device does not notify.
import type { Hours } from './settings.svelte';

/** Whether a time of day, such as `23:15`, is in quiet hours. */
export function isQuiet(hours: Hours | null, clock: string): boolean {
  if (!hours || hours.from === hours.to) return false;
  const overnight = hours.from > hours.to;
  return overnight ? clock >= hours.from || clock < hours.to : clock >= hours.from && clock < hours.to;
}

/** The time of day, by the clock of this device. */
export function clock(at: Date): string {
  const two = (number: number) => String(number).padStart(2, '0');
  return `${two(at.getHours())}:${two(at.getMinutes())}`;
}
