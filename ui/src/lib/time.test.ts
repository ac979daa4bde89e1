import { expect, test } from 'vitest';
import { clock, count, duration, many, size, when } from './time';

test('durations', () => {
  const cases: [number, string][] = [
    [38, '38 ms'],
    [999.6, '1000 ms'],
    [4_250, '4.2 s'],
    [12_900, '12 s'],
    [724_000, '12 m 04 s'],
    [3_720_000, '1 h 02 m'],
    [273_600_000, '3 d 4 h'],
  ];
  for (const [ms, shown] of cases) expect(duration(ms)).toBe(shown);
});

test('clocks', () => {
  expect(clock(42_900)).toBe('0:42');
  expect(clock(724_000)).toBe('12:04');
  expect(clock(3_723_000)).toBe('1:02:03');
  expect(clock(-5)).toBe('0:00');
});

test('counts and sizes', () => {
  expect(count(1284)).toBe('1\u2009284');
  expect(count(45678)).toBe('45\u2009678');
  expect(count(999)).toBe('999');
  expect(many(1, 'file')).toBe('1 file');
  expect(many(2, 'process', 'processes')).toBe('2 processes');
  expect(size(0)).toBe('0 B');
  expect(size(12 * 1024 * 1024)).toBe('12.0 MiB');
  expect(size(1023)).toBe('1023 B');
});

test('times are relative for an hour', () => {
  const now = new Date(2026, 10, 15, 14, 2, 0).getTime();
  expect(when(now - 42_000, now)).toBe('42 s ago');
  expect(when(now - 59 * 60_000, now)).toBe('59 m ago');
  expect(when(now - 2 * 3_600_000, now)).toBe('12:02');
  expect(when(new Date(2026, 10, 13, 9, 5), now)).toBe('2026-11-13 09:05');
});
