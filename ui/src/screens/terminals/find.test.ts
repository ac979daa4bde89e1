import { expect, test } from 'vitest';
import { find } from './find';

test('the last place comes first, whatever the case', () => {
  expect(find(['error one', 'fine', 'Error, ERROR'], 'error')).toEqual([
    { line: 2, column: 7, length: 5 },
    { line: 2, column: 0, length: 5 },
    { line: 0, column: 0, length: 5 },
  ]);
  expect(find(['a'], '')).toEqual([]);
});
