import { expect, it } from 'vitest';
import { wordDiff } from './words';

it('tells which words were changed', () => {
  expect(wordDiff('rm -rf build', 'rm -rf build/cache')).toEqual([
    { text: 'rm -rf ', kind: 'same' },
    { text: 'build', kind: 'removed' },
    { text: 'build/cache', kind: 'added' },
  ]);
  expect(wordDiff('a b', 'a b')).toEqual([{ text: 'a b', kind: 'same' }]);
  expect(wordDiff('', 'a')).toEqual([{ text: 'a', kind: 'added' }]);
});

it('does not compare what is too long word by word', () => {
  expect(wordDiff('x '.repeat(3000), 'y')).toHaveLength(2);
});
