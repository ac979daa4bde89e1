import { expect, it } from 'vitest';
import type { PartView } from '../../api/schema';
import { sentence } from './sentence';

const part = (more: Partial<PartView>): PartView =>
  ({ deletes: [], writes: [], hosts: [], runs: [], does: '', possible: false, ...more }) as PartView;

it('says what a command does', () => {
  expect(sentence([part({ does: 'reads `large-file.log`.' })])).toBe('Reads `large-file.log`');
  expect(sentence([part({ deletes: ['build/'] }), part({ does: 'lists files.' })])).toBe(
    'Deletes build/, then lists files',
  );
  expect(sentence([part({ unknown: 'x', runs: ['./deploy.sh'] })])).toBe('Unknown: runs ./deploy.sh');
  expect(sentence([part({ writes: ['a', 'b', 'c', 'd', 'e'] })])).toBe('Writes a, b, c and 2 more');
  expect(sentence([part({ does: 'prints `a`.' }), part({ does: 'is part of the shell' })])).toBe('Prints `a`');
  expect(sentence([])).toBe('');
});
