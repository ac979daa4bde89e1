// What can be decided about an approval as it stands.
import type { ApprovalView, DecisionRequest, Tried } from '../../api/schema';
import { changesOf } from '../../parts/effect';
import { text } from './text';

/** The main decision. */
export interface Main {
  kind: DecisionRequest['kind'];
  label: string;
  /** It stands out. */
  filled: boolean;
  /** It is asked once more. */
  confirm: boolean;
}

/** Whether what it did on a copy cannot be applied as things are now. */
export function isStale(effect: Tried): boolean {
  return effect.state === 'stale' || effect.conflicts.length > 0;
}

export function mainOf({ effect, risk, count }: ApprovalView): Main {
  const applies = effect != null && changesOf(effect.changes) > 0;
  const failed = effect != null && effect.exit_code !== 0;
  const confirm = risk === 'high';
  const label = applies ? text.apply : text.once;
  return {
    kind: applies ? 'apply_effect' : 'approve_once',
    label: confirm ? text.anyway : text.counted(label, count),
    filled: !confirm && !failed,
    confirm,
  };
}

/** Why the main decision cannot be taken, if it cannot. */
export function blockedBy(
  { effect }: ApprovalView,
  { seen, shown }: { seen: boolean; shown: string },
): string {
  if (!seen) return text.scroll;
  if (!effect) return '';
  if (isStale(effect)) return text.changedSince;
  if (effect.after.length) return text.builtOn;
  // Nobody applies what has not been on the page.
  return changesOf(effect.changes) && shown !== effect.changes.hash ? text.loading : '';
}
