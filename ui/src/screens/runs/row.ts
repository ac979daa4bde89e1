// What the columns say about a run.
import type { Run } from '../../api/schema';
import { verdict } from '../../lib/filter';
import { person } from '../../lib/state';
import { duration } from '../../lib/time';
import { text } from './text';

export const COLUMNS = [
  'time',
  'agent',
  'sandbox',
  'command',
  'verdict',
  'by',
  'took',
  'result',
] as const;

export type Column = (typeof COLUMNS)[number];

export type Group = 'none' | 'session' | 'sandbox';

/** How the verdict reads, and whether it is worth a badge. */
export function judged(run: Run): { text: string; kind?: 'ask' | 'block' | 'human' } {
  if (run.approved_by) return { text: text.verdicts.approved, kind: 'human' };
  const said = verdict(run);
  if (said === 'auto') return { text: text.verdicts.auto };
  if (said === 'reject') return { text: text.verdicts.reject, kind: 'block' };
  // Amber is for what still waits.
  return run.state === 'waiting' ? { text: text.verdicts.ask, kind: 'ask' } : { text: text.verdicts.ask };
}

/** Who decided: a person, a rule, or a clock. */
export function decider(run: Run): string {
  if (run.approved_by) return run.approved_by;
  switch (run.state) {
    case 'rejected':
    case 'withdrawn':
      return person(run) ?? '';
    case 'expired':
      return text.clock;
    case 'waiting':
    case 'held':
      return '';
    default:
      return run.changes?.applied_by ?? text.policy;
  }
}

export function took(run: Run): string {
  return run.duration_ms == null ? '' : duration(run.duration_ms);
}

/** What rows stand together by. */
export function groupOf(run: Run | undefined, group: Group): string {
  if (!run || group === 'none') return '';
  return (group === 'session' ? run.session_id : run.sandbox_id) ?? '';
}
