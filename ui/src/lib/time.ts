// Times, durations, sizes and counts, as people read them.

const THIN = '\u2009';

export const WEEK_MS = 7 * 24 * 3600 * 1000;

/** `1 284`: thousands are set apart by thin spaces. */
export function count(number: number): string {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+(?!\d))/g, THIN);
}

/** `2 files`, `1 file`. */
export function many(number: number, one: string, more = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : more}`;
}

/** `38 ms`, `4.2 s`, `12 m 04 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${(Math.floor(seconds * 10) / 10).toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m ${two(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${two(minutes % 60)} m`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** `0:42`, `12:04`, `1:02:03`: a clock that runs. */
export function clock(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${two(seconds % 60)}`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

/** Relative up to an hour, then the time, then the date. */
export function when(then: string | number | Date, now: number): string {
  const time = new Date(then);
  const ago = now - time.getTime();
  if (ago >= -1000 && ago < 60_000) return `${Math.max(0, Math.floor(ago / 1000))} s ago`;
  if (ago >= 0 && ago < 3_600_000) return `${Math.floor(ago / 60_000)} m ago`;
  return at(then, now);
}

/** The time of day, and the date if that is another. */
export function at(then: string | number | Date, now: number): string {
  const time = new Date(then);
  const sameDay = new Date(now).toDateString() === time.toDateString();
  return sameDay ? hours(time) : `${date(time)} ${hours(time)}`;
}

/** The exact time with its zone, for tooltips and those who cannot see. */
export function exact(at: string | number | Date): string {
  const time = new Date(at);
  const zone = -time.getTimezoneOffset();
  const sign = zone < 0 ? '−' : '+';
  const offset = `${sign}${two(Math.abs(zone) / 60)}:${two(Math.abs(zone) % 60)}`;
  return `${date(time)} ${hours(time)}:${two(time.getSeconds())} ${offset}`;
}

/** `09:46:40`. */
export function seconds(at: string | number | Date): string {
  const time = new Date(at);
  return `${hours(time)}:${two(time.getSeconds())}`;
}

/** `12.0 MiB`. */
export function size(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  const shown = unit === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toFixed(1);
  return `${shown} ${units[unit]}`;
}

function hours(time: Date): string {
  return `${two(time.getHours())}:${two(time.getMinutes())}`;
}

function date(time: Date): string {
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
}

function two(number: number): string {
  return String(Math.floor(number)).padStart(2, '0');
}
