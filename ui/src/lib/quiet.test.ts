import { expect, test } from 'vitest';
import { clock, isQuiet } from './quiet';

test('quiet hours may go over midnight', () => {
  const night = { from: '22:00', to: '07:00' };
  for (const [at, quiet] of [['21:59', false], ['22:00', true], ['06:59', true], ['07:00', false]] as const) {
    expect(isQuiet(night, at), at).toBe(quiet);
  }
  expect(isQuiet({ from: '12:00', to: '13:00' }, '12:30')).toBe(true);
  expect(isQuiet({ from: '12:00', to: '12:00' }, '12:00')).toBe(false);
  expect(isQuiet(null, '12:00')).toBe(false);
});

test('a clock has two digits each', () => {
  expect(clock(new Date(2026, 0, 1, 7, 5))).toBe('07:05');
});
