// The list of texts that no command may contain.
import type { Listed } from '../../api/schema';

/** As an entry is kept: without blanks around it, and one between words. */
export function tidy(entry: string): string {
  return entry.trim().replace(/\s+/g, ' ');
}

/** Why an entry is not added, if it is not. */
export function refused(list: string[], entry: string): 'empty' | 'duplicate' | undefined {
  const tidied = tidy(entry).toLowerCase();
  if (!tidied) return 'empty';
  return list.some((known) => known.toLowerCase() === tidied) ? 'duplicate' : undefined;
}

/** Whether two lists say the same, in the same order. */
export function same(one: string[], other: string[]): boolean {
  return one.length === other.length && one.every((entry, at) => entry === other[at]);
}

/** More than this part of what is run every week is blocked on purpose, or not at all. */
const TOO_MANY = 0.05;

type Past = Pick<Listed, 'commands' | 'looked_at' | 'matched'>;

/** Commands that a list would block and another does not, if these are surprisingly many. */
export function surprising(before: Past, after: Past): { number: number; examples: string[] } | undefined {
  const number = after.matched - before.matched;
  if (number <= after.looked_at * TOO_MANY) return undefined;
  const known = new Set(before.commands.map(({ command_id }) => command_id));
  const fresh = after.commands.filter(({ command_id }) => !known.has(command_id));
  return { number, examples: fresh.map(({ command }) => command) };
}
