import { expect, it } from 'vitest';
import { range } from './range';

it('an address names a line or some', () => {
  expect(range('#L120')).toEqual([120, 120]);
  expect(range('#L120-L140')).toEqual([120, 140]);
  expect(range('#L140-L120')).toEqual([120, 140]);
  expect(range('')).toBeUndefined();
  expect(range('#L0')).toBeUndefined();
  expect(range('#content')).toBeUndefined();
});
