import { expect, it } from 'vitest';
import type { ChangeInfo } from '../api/schema';
import { arranged } from './effect';

let index = 0;
const change = (kind: string, path: string, more: Partial<ChangeInfo> = {}): ChangeInfo => ({
  index: index++,
  kind,
  path,
  is: 'file',
  added: 1,
  removed: 0,
  ...more,
});

it('shows what is outside and what is lost first, and what nobody can read last', () => {
  const { shown } = arranged([
    change('created', 'new', { size_after: 1 }),
    change('modified', 'photo', { added: null, size_after: 9 }),
    change('times', 'dir'),
    change('modified', 'a', { size_after: 1 }),
    change('deleted', 'b'),
    change('modified', '/etc/x'),
  ]);
  expect(shown.map(({ path }) => path)).toEqual(['/etc/x', 'b', 'a', 'new', 'photo']);
});

it('puts many files into the directory that they went with, and few beside it', () => {
  const gone = change('deleted', 'build', { is: 'directory' });
  const files = Array.from({ length: 5 }, (_, at) => change('deleted', `build/f${at}`));
  const all = arranged([...files, gone]);
  expect(all.shown).toEqual([gone]);
  expect(all.inside.get(gone.index)).toHaveLength(5);
  const few = arranged([files[0]!, gone]);
  expect(few.shown).toHaveLength(2);
  expect(few.inside.size).toBe(0);
});
