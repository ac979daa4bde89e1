import { expect, test } from 'vitest';
import { matching, MOST, tested, type Group, type Item } from './match';

const item = (group: Group, label: string, about = ''): Item => ({
  group,
  key: label,
  label,
  about,
  run: () => {},
});
const labels = (items: Item[], typed: string) => matching(items, typed).map(({ label }) => label);

const items = [
  item('screens', 'Terminals'),
  item('actions', 'New terminal'),
  item('terminals', 'dev-server', 'npm run dev'),
  item('actions', 'Pause coder'),
];

test('every word has to be there, beginnings first', () => {
  expect(labels(items, 'term')).toEqual(['Terminals', 'New terminal']);
  expect(labels(items, 'new term')).toEqual(['New terminal']);
  expect(labels(items, 'npm')).toEqual(['dev-server']);
  expect(labels(items, 'pause nobody')).toEqual([]);
});

test('no more than eight are shown, and not all of one kind', () => {
  const many = Array.from({ length: 20 }, (_, at) => item('runs', `ls ${at}`));
  expect(labels([...many, item('screens', 'ls')], 'ls')).toHaveLength(6);
  expect(labels([...items, ...many], '')).toHaveLength(MOST);
});

test('a line that begins with $ is a command to be tested', () => {
  expect(tested('$ rm -rf x ')).toBe('rm -rf x');
  expect(tested('$')).toBe('');
  expect(tested('rm $x')).toBeUndefined();
});
