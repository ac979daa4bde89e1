import { expect, test } from 'vitest';
import type { PastCommand } from '../../api/schema';
import { refused, same, surprising, tidy } from './blacklist';

test('an entry is kept without blanks that do not matter', () => {
  expect(tidy('  rm \t -rf   / \n')).toBe('rm -rf /');
});

test('what is empty or there already is not added', () => {
  const list = ['rm -rf /', 'sudo '];
  expect(refused(list, ' \t ')).toBe('empty');
  expect(refused(list, 'RM   -rf / ')).toBe('duplicate');
  expect(refused(list, 'sudo')).toBeUndefined();
  expect(refused(list, 'deploy')).toBeUndefined();
});

test('only what more than a twentieth of the commands are newly blocked by is surprising', () => {
  const past = (looked_at: number, ...ids: string[]) => ({
    looked_at,
    matched: ids.length,
    commands: ids.map((command_id) => ({ command_id, command: `echo ${command_id}` }) as PastCommand),
  });
  expect(surprising(past(40), past(40, 'a', 'b'))).toBeUndefined();
  expect(surprising(past(39), past(39, 'a', 'b'))).toEqual({ number: 2, examples: ['echo a', 'echo b'] });
  expect(surprising(past(10, 'a'), past(10, 'a', 'b'))).toEqual({ number: 1, examples: ['echo b'] });
  expect(surprising(past(10, 'a', 'b'), past(10, 'a'))).toBeUndefined();
  expect(surprising(past(0), past(0))).toBeUndefined();
});

test('lists are the same when their entries are', () => {
  expect(same(['a', 'b'], ['a', 'b'])).toBe(true);
  expect(same(['a', 'b'], ['b', 'a'])).toBe(false);
  expect(same(['a'], ['a', 'b'])).toBe(false);
});
