// How a file changes, line by line. The server's description leaves the shape
// of this open; these are the types of crates/effects/src/diff.rs.

export interface DiffLine {
  side: 'context' | 'added' | 'removed';
  old: number | null;
  new: number | null;
  text: string;
  no_newline: boolean;
  masked: boolean;
}

export interface Hunk {
  old_start: number;
  old_lines: number;
  new_start: number;
  new_lines: number;
  lines: DiffLine[];
}

interface Sizes {
  before: number | null;
  after: number | null;
}

export type Shape =
  | 'text'
  | 'directory'
  | 'nothing'
  | { binary: Sizes & { guess: string | null } }
  | { too_large: Sizes }
  | { link: { before: string | null; after: string | null } };

export interface FileDiff {
  shape: Shape;
  added: number;
  removed: number;
  hunks: Hunk[];
  more?: { offset: number; lines: number };
}

/** Puts a page behind those before it. A hunk that goes over several pages is on
 * each of them. */
export function joined(before: FileDiff, next: FileDiff): FileDiff {
  const hunks = [...before.hunks];
  for (const hunk of next.hunks) {
    const last = hunks.at(-1);
    if (last && last.old_start === hunk.old_start && last.new_start === hunk.new_start) {
      hunks[hunks.length - 1] = { ...last, lines: [...last.lines, ...hunk.lines] };
    } else {
      hunks.push(hunk);
    }
  }
  const { more, ...rest } = { ...before, more: next.more, hunks };
  return more ? { ...rest, more } : rest;
}

/** One row of two columns. */
export interface Pair {
  left: DiffLine | undefined;
  right: DiffLine | undefined;
}

/** Puts what goes beside what comes in its place. */
export function pairs(lines: DiffLine[]): Pair[] {
  const found: Pair[] = [];
  let removed: DiffLine[] = [];
  let added: DiffLine[] = [];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1) {
      found.push({ left: removed[at], right: added[at] });
    }
    removed = [];
    added = [];
  };
  for (const line of lines) {
    if (line.side === 'removed') {
      if (added.length) flush();
      removed.push(line);
    } else if (line.side === 'added') {
      added.push(line);
    } else {
      flush();
      found.push({ left: line, right: line });
    }
  }
  flush();
  return found;
}
