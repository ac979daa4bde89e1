// Finds text in what a terminal shows.
import type { Spot } from '../../parts/terminal/screen';

/** More than anybody goes through. */
const MOST = 1000;

/** Returns where a text is, whatever its case, the last place first. */
export function find(lines: string[], wanted: string): Spot[] {
  const lower = wanted.toLowerCase();
  const found: Spot[] = [];
  if (!lower) return found;
  for (let line = lines.length - 1; line >= 0 && found.length < MOST; line -= 1) {
    const text = lines[line]!.toLowerCase();
    for (let at = text.lastIndexOf(lower); at >= 0; at = at ? text.lastIndexOf(lower, at - 1) : -1) {
      found.push({ line, column: at, length: wanted.length });
    }
  }
  return found;
}
