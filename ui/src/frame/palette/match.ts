// What of all there is fits what somebody types.

export const GROUPS = ['screens', 'actions', 'terminals', 'runs', 'sandboxes', 'agents', 'rules'] as const;

export type Group = (typeof GROUPS)[number];

export interface Item {
  group: Group;
  /** Names it among those of its group; it is found by that, too. */
  key: string;
  label: string;
  /** What else it is found by, and shown beside it. */
  about?: string;
  /** Goes there, or opens its dialog. */
  run: () => void;
}

/** Nobody reads a longer list. */
export const MOST = 8;

/** So that one kind of thing does not push out all others. */
const MOST_OF_ONE = 5;

/** Returns the items that fit, the best first, each group together. */
export function matching(items: Item[], typed: string): Item[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const rated = items
    .map((item) => ({ item, points: points(item, words) }))
    .filter(({ points }) => points > 0)
    .sort((a, b) => b.points - a.points || order(a.item) - order(b.item));
  const of = new Map<Group, Item[]>();
  let number = 0;
  for (const { item } of rated) {
    const same = of.get(item.group) ?? [];
    if (number === MOST || (words.length && same.length === MOST_OF_ONE)) continue;
    of.set(item.group, [...same, item]);
    number += 1;
  }
  return [...of.values()].flat();
}

// Every word must be there; at a word's beginning it counts more.
function points({ key, label, about = '' }: Item, words: string[]): number {
  const [name, rest] = [label.toLowerCase(), `${about} ${key}`.toLowerCase()];
  let sum = 1;
  for (const word of words) {
    const found = rate(name, word) || (rest.includes(word) ? 1 : 0);
    if (!found) return 0;
    sum += found;
  }
  return sum;
}

function rate(name: string, word: string): number {
  if (name.startsWith(word)) return 4;
  const at = name.indexOf(word);
  if (at < 0) return 0;
  return /[\p{L}\p{N}]/u.test(name[at - 1]!) ? 2 : 3;
}

function order({ group }: Item): number {
  return GROUPS.indexOf(group);
}

/** The command of a line that begins with `$`, which is only ever tested. */
export function tested(typed: string): string | undefined {
  return /^\s*\$/.test(typed) ? typed.replace(/^\s*\$\s*/, '').trim() : undefined;
}
