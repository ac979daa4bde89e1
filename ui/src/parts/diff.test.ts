import { describe, expect, it } from 'vitest';
import { joined, pairs, type DiffLine, type FileDiff, type Hunk } from './diff';

const line = (side: DiffLine['side'], text: string): DiffLine => ({
  side,
  old: null,
  new: null,
  text,
  no_newline: false,
  masked: false,
});

const hunk = (at: number, ...lines: DiffLine[]): Hunk => ({
  old_start: at,
  old_lines: 9,
  new_start: at,
  new_lines: 9,
  lines,
});

const diff = (hunks: Hunk[], more?: FileDiff['more']): FileDiff => ({
  shape: 'text',
  added: 1,
  removed: 1,
  hunks,
  ...(more && { more }),
});

describe('pages of a diff', () => {
  it('are one diff, also where a hunk goes over two of them', () => {
    const first = diff([hunk(1, line('added', 'a'))], { offset: 1, lines: 2 });
    const next = diff([hunk(1, line('added', 'b')), hunk(20, line('removed', 'c'))]);
    const all = joined(first, next);
    expect(all.hunks.map(({ lines }) => lines.map(({ text }) => text))).toEqual([['a', 'b'], ['c']]);
    expect(all.more).toBeUndefined();
  });
});

describe('two columns', () => {
  it('have what goes beside what comes', () => {
    const found = pairs([
      line('context', 'x'),
      line('removed', 'a'),
      line('removed', 'b'),
      line('added', 'A'),
      line('context', 'y'),
      line('added', 'z'),
    ]);
    expect(found.map(({ left, right }) => [left?.text, right?.text])).toEqual([
      ['x', 'x'],
      ['a', 'A'],
      ['b', undefined],
      ['y', 'y'],
      [undefined, 'z'],
    ]);
  });
});
