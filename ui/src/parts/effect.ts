// How much changed, and in which order people look at it.
import type { ChangeInfo, ChangesView } from '../api/schema';

const ORDER = ['deleted', 'modified', 'created', 'renamed', 'mode', 'link'];

/** Deleted directories with fewer files than this show them all. */
const FEW = 4;

interface Arranged {
  shown: ChangeInfo[];
  /** What goes with a deleted directory, by that one's number. */
  inside: Map<number, ChangeInfo[]>;
}

/** How many paths changed. */
export function changesOf(changes: ChangesView): number {
  return changes.created + changes.modified + changes.deleted + changes.renamed + changes.other;
}

/** What is outside of the sandbox first, then what is lost; what only has
 * another time is left out, and files go with the directory they went with. */
export function arranged(changes: ChangeInfo[]): Arranged {
  const wanted = changes.filter(({ kind }) => kind !== 'times');
  const gone = wanted
    .filter(({ kind, is }) => kind === 'deleted' && is === 'directory')
    .map((change) => ({ change, prefix: change.path.replace(/\/*$/, '/') }))
    .sort((a, b) => a.prefix.length - b.prefix.length);
  const inside = new Map<number, ChangeInfo[]>();
  const shown = wanted.filter((change) => {
    const within =
      change.kind === 'deleted' &&
      gone.find(({ change: above, prefix }) => above !== change && change.path.startsWith(prefix));
    if (!within) return true;
    const list = inside.get(within.change.index) ?? [];
    if (change.is !== 'directory') list.push(change);
    inside.set(within.change.index, list);
    return false;
  });
  for (const [index, list] of inside) {
    if (!list.length) inside.delete(index);
    else if (list.length < FEW) {
      shown.push(...list);
      inside.delete(index);
    }
  }
  return { shown: shown.sort((a, b) => place(a) - place(b) || a.index - b.index), inside };
}

function place({ path, kind, size_after, added }: ChangeInfo): number {
  if (path.startsWith('/')) return -1;
  const at = ORDER.indexOf(kind);
  // What is no text comes last: nobody can read it.
  if (kind !== 'deleted' && size_after != null && added == null) return ORDER.length + 1;
  return at < 0 ? ORDER.length : at;
}
