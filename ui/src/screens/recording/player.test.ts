import { expect, test } from 'vitest';
import { markFrom } from './player.svelte';

const marks = [{ time: 1 }, { time: 5 }, { time: 9 }];

test('marks are gone to one after the other', () => {
  expect(markFrom(marks, 0, true, false)).toEqual({ time: 1 });
  expect(markFrom(marks, 5, true, false)).toEqual({ time: 9 });
  expect(markFrom(marks, 9, true, false)).toBeUndefined();
  expect(markFrom(marks, 5, false, false)).toEqual({ time: 1 });
  expect(markFrom(marks, 1, false, false)).toBeUndefined();
});

test('while it plays, the mark before is not the one that was just gone to', () => {
  expect(markFrom(marks, 5.4, false, true)).toEqual({ time: 1 });
  expect(markFrom(marks, 5.4, false, false)).toEqual({ time: 5 });
});
