import { describe, expect, it } from 'vitest';
import type { ApprovalView, Tried } from '../../api/schema';
import { blockedBy, mainOf } from './state';
import { text } from './text';

const tried = (more: object = {}): Tried =>
  ({
    state: 'ready',
    exit_code: 0,
    conflicts: [],
    after: [],
    changes: { hash: 'h', created: 0, modified: 1, deleted: 0, renamed: 0, other: 0 },
    ...more,
  }) as unknown as Tried;
const asked = (more: Partial<ApprovalView>): ApprovalView =>
  ({ risk: 'low', count: 1, ...more }) as ApprovalView;

describe('the main decision', () => {
  it('applies what was tried, and approves what was not', () => {
    expect(mainOf(asked({ effect: tried() }))).toMatchObject({ kind: 'apply_effect', filled: true });
    expect(mainOf(asked({ count: 3 }))).toMatchObject({ kind: 'approve_once', label: 'Approve once (3)' });
  });

  it('does not stand out when a try failed, and is asked twice at high risk', () => {
    expect(mainOf(asked({ effect: tried({ exit_code: 1 }) })).filled).toBe(false);
    expect(mainOf(asked({ risk: 'high' }))).toMatchObject({ confirm: true, filled: false });
  });
});

describe('what stands in its way', () => {
  const ready = { seen: true, shown: 'h' };

  it('is a command that was not seen to its end', () => {
    expect(blockedBy(asked({}), { seen: false, shown: '' })).toBe(text.scroll);
    expect(blockedBy(asked({}), { seen: true, shown: '' })).toBe('');
  });

  it('is an effect that is overtaken, comes later, or is not the one on the page', () => {
    expect(blockedBy(asked({ effect: tried() }), ready)).toBe('');
    expect(blockedBy(asked({ effect: tried({ state: 'stale' }) }), ready)).toBe(text.changedSince);
    expect(blockedBy(asked({ effect: tried({ after: ['r_1'] }) }), ready)).toBe(text.builtOn);
    expect(blockedBy(asked({ effect: tried() }), { seen: true, shown: 'other' })).toBe(text.loading);
  });
});
