import { expect, test } from 'vitest';
import { beyond, isAbout, NEW, toFields, toRule } from './rule';

test('what was not touched is as it was', () => {
  for (const rule of [
    { ...NEW, name: 'push', patterns: ['git push', 'npm publish'], until: '2026-11-20', remedy: 'Ask.' },
    { ...NEW, table: { program: ['rm'], paths: ['tmp', 'tmp/**'], tags: ['disk'], effects: ['delete'] }, who: 'users' },
    { ...NEW, change: true, kinds: ['deleted'], patterns: ['db/**'] },
  ]) {
    expect(toRule(toFields(rule), rule)).toEqual(rule);
  }
});

test('a rule is about patterns or about a table, and never about both', () => {
  const fields = { ...toFields(NEW), patterns: 'ls', effects: ['network'] };
  expect(toRule({ ...fields, by: 'patterns' }, NEW)).toMatchObject({ patterns: ['ls'], table: {} });
  expect(toRule({ ...fields, by: 'table' }, NEW)).toMatchObject({ patterns: [], table: { effects: ['network'] } });
  expect(isAbout(toRule({ ...fields, by: 'patterns', patterns: ' \n' }, NEW))).toBe(false);
});

test('what there is no field for is named', () => {
  expect(beyond({ ...NEW, table: { regex: ['a'], paths: ['b'] } })).toEqual([['regex', ['a']]]);
});
