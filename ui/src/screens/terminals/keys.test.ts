import { expect, test } from 'vitest';
import { control, DoubleEsc } from './keys';

test('Ctrl makes control characters of letters, and of nothing else', () => {
  expect(control('c')).toBe('\x03');
  expect(control('C')).toBe('\x03');
  expect(control('[')).toBe('\x1b');
  expect(control('ä')).toBe('ä');
  expect(control('ls')).toBe('ls');
});

test('two Esc count together only when nothing and little time is between them', () => {
  const esc = new DoubleEsc();
  expect(esc.typed('\x1b', 0)).toBe(false);
  expect(esc.typed('\x1b', 400)).toBe(true);
  // A third is a first one again.
  expect(esc.typed('\x1b', 500)).toBe(false);
  expect(esc.typed('x', 550)).toBe(false);
  expect(esc.typed('\x1b', 600)).toBe(false);
  expect(esc.typed('\x1b', 1001)).toBe(false);
});
