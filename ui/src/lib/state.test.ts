import { expect, it } from 'vitest';
import { label, spoken, type Told } from './state';

const run = (more: Partial<Told>): Told => ({ state: 'succeeded', timeout_ms: 120_000, ...more }) as Told;
const reason = (code: string, text: string) => ({ code, text }) as Told['reason'] & object;

it('a state reads the same everywhere', () => {
  const read = (more: Partial<Told>) => {
    const { mark, text } = label(run(more));
    return `${mark} ${text}`;
  };
  expect(read({})).toBe('✓ 0');
  expect(read({ state: 'failed', exit_code: 2 })).toBe('✗ 2');
  expect(read({ state: 'timed_out' })).toBe('⏱ after 2 m');
  expect(read({ state: 'timed_out', idle_ms: 5000, reason: reason('idle_limit', '') })).toBe('⏱ after 5.0 s');
  expect(read({ state: 'killed', reason: reason('stopped', 'Stopped by ana. 1 process was ended.') })).toBe(
    '■ killed by ana',
  );
  expect(read({ state: 'killed', reason: reason('memory_limit', 'memory limit 1 GiB reached.') })).toBe(
    '■ memory limit',
  );
  expect(read({ state: 'killed', signal: 9 })).toBe('■ signal 9');
  expect(read({ state: 'rejected', reason: reason('rejected', 'Rejected by ana: ‘no’') })).toBe('⊘ Rejected by ana');
});

it('a state is said in words', () => {
  expect(spoken(run({}))).toBe('Succeeded, exit 0');
  expect(spoken(run({ state: 'failed', exit_code: 2 }))).toBe('Failed, exit 2');
  expect(spoken(run({ state: 'timed_out' }))).toBe('Timed out after 2 m');
});
