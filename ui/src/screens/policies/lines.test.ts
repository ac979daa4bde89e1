import { expect, test } from 'vitest';
import { changes, near } from './lines';

const shown = (before: string, after: string) =>
  changes(before, after).map(({ kind, text }) => ({ same: ' ', added: '+', removed: '-' })[kind] + text);

test('lines that were added, removed and changed', () => {
  expect(shown('a\nb\nc', 'a\nc')).toEqual([' a', '-b', ' c']);
  expect(shown('a\nc', 'a\nb\nc')).toEqual([' a', '+b', ' c']);
  expect(shown('a\nb', 'a\nx')).toEqual([' a', '-b', '+x']);
  expect(shown('', 'a')).toEqual(['-', '+a']);
  expect(shown('a', 'a')).toEqual([' a']);
});

test('what is far from any change is left out', () => {
  const many = Array.from({ length: 20 }, (_, at) => `l${at}`);
  const lines = near(changes(many.join('\n'), [...many.slice(0, 10), 'new', ...many.slice(10)].join('\n')));
  expect(lines[0]).toBeUndefined();
  expect(lines.at(-1)).toBeUndefined();
  expect(lines.filter((line) => line?.kind === 'same')).toHaveLength(6);
});
