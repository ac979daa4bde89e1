import { expect, test } from 'vitest';
import type { Explanation } from '../../api/schema';
import { deciding, rows } from './parts';

const part = (text: string, verdict: string, rule: number | null) => ({ text, verdict, rule });
const told = {
  verdict: 'ask',
  parts: [part('git status', 'auto', 1), part('rm x', 'ask', null), part('mv a b', 'ask', 0)],
  rules: [{ name: 'moving' }, { name: 'reading' }],
} as unknown as Explanation;

test('each part names the rule that it met, as it is numbered for people', () => {
  expect(rows(told).map(({ rule }) => rule)).toEqual([
    { number: 2, name: 'reading' },
    undefined,
    { number: 1, name: 'moving' },
  ]);
});

test('what decides is what has the verdict of the whole', () => {
  expect([...deciding(told)]).toEqual([0]);
});
