import { describe, expect, it } from 'vitest';
import type { Run } from '../../api/schema';
import { decider, judged } from './row';

const run = (more: Partial<Run>): Run =>
  ({ command_id: 'r_1', created_at: 't', requested_by: 'coder', command: 'ls', state: 'succeeded', ...more }) as Run;

describe('who decided', () => {
  it('is a person, a rule or a clock', () => {
    expect(decider(run({ approved_by: 'ana' }))).toBe('ana');
    expect(decider(run({}))).toBe('policy');
    expect(decider(run({ state: 'expired' }))).toBe('clock');
    expect(decider(run({ state: 'waiting' }))).toBe('');
    const reason = { code: 'rejected', text: 'Rejected by ana: ‘no’ Nothing was run.' } as Run['reason'];
    expect(decider(run({ state: 'rejected', reason: reason! }))).toBe('ana');
  });

  it('has a badge only where it is not the usual', () => {
    expect(judged(run({})).kind).toBeUndefined();
    expect(judged(run({ approved_by: 'ana', approval_id: 'ap_1' }))).toEqual({ text: 'Approved', kind: 'human' });
    expect(judged(run({ state: 'blocked' })).kind).toBe('block');
  });
});
