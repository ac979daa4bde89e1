import { expect, it } from 'vitest';
import type { PartView } from '../api/schema';
import { linked, order } from './does';

const part = (text: string, span: [number, number], more: Partial<PartView> = {}): PartView =>
  ({ text, span, verdict: 'ask', link: 'then', depth: 0, possible: false, ...more }) as PartView;

it('lists parts as they are read: variables first, what contains others before them', () => {
  const parts = [
    part('inner', [4, 9], { depth: 1 }),
    part('outer', [0, 10]),
    part('VAR', [0, 0]),
    part('next', [14, 20], { link: 'and' }),
  ];
  expect(order(parts).map((row) => row.part.text)).toEqual(['VAR', 'outer', 'inner', 'next']);
  expect(linked(parts[3]!, parts[0])).toBe('and');
  expect(linked(parts[0]!, parts[1])).toBe('inside');
  expect(linked(parts[2]!)).toBeUndefined();
});

it('shows what is only possible where it is stricter than what is sure', () => {
  const sure = part('a', [0, 5]);
  const milder = part('b', [0, 5], { possible: true });
  const stricter = part('c', [0, 5], { possible: true, verdict: 'reject' });
  expect(order([sure, milder, stricter]).map((row) => row.part.text)).toEqual(['a', 'c']);
  expect(linked(stricter, sure)).toBe('possible');
});
