// How the state of a run reads, the same everywhere.
import type { Run } from '../api/schema';
import { duration } from './time';

export type Told = Pick<
  Run,
  'state' | 'exit_code' | 'signal' | 'reason' | 'timeout_ms' | 'idle_ms' | 'duration_ms'
>;

interface Label {
  /** A sign that is not a colour. */
  mark: string;
  text: string;
  kind: 'ask' | 'block' | 'human' | 'muted' | 'plain';
}

/** The sign, the words and the colour of a state. */
export function label(run: Told): Label {
  switch (run.state) {
    case 'waiting':
      return { mark: '◔', text: 'Waiting', kind: 'ask' };
    case 'held':
      return { mark: '‖', text: 'Held', kind: 'ask' };
    case 'running':
      return { mark: '●', text: 'Running', kind: 'plain' };
    case 'succeeded':
      return { mark: '✓', text: '0', kind: 'plain' };
    case 'failed':
      return { mark: '✗', text: failure(run), kind: 'block' };
    case 'timed_out':
      return { mark: '⏱', text: `after ${limit(run)}`, kind: 'block' };
    case 'killed':
      return { mark: '■', text: end(run), kind: 'block' };
    case 'blocked':
      return { mark: '⛔', text: 'Blocked', kind: 'block' };
    case 'rejected': {
      const who = person(run);
      return { mark: '⊘', text: who ? `Rejected by ${who}` : 'Rejected', kind: 'human' };
    }
    case 'expired':
      return { mark: '◌', text: 'Expired', kind: 'muted' };
    case 'withdrawn':
      return { mark: '◌', text: 'Withdrawn', kind: 'muted' };
    case 'lost':
      return { mark: '?', text: 'Lost', kind: 'block' };
  }
}

/** The same in words alone, for those who cannot see signs. */
export function spoken(run: Told): string {
  const { text } = label(run);
  if (run.state === 'succeeded') return 'Succeeded, exit 0';
  if (run.state === 'failed') return run.exit_code == null ? 'Failed' : `Failed, exit ${run.exit_code}`;
  if (run.state === 'timed_out') return `Timed out ${text}`;
  return text;
}

/** The name in “Rejected by ana: …”, “Stopped by ana. …”. */
export function person(run: Pick<Run, 'reason'>): string | undefined {
  return /^(?:Rejected|Stopped|Withdrawn) by ([^\s:.]+)/.exec(run.reason?.text ?? '')?.[1];
}

function failure(run: Told): string {
  return run.exit_code == null ? 'not started' : String(run.exit_code);
}

// A limit is a round number: `2 m`, not `2 m 00 s`.
function limit(run: Told): string {
  const ms = run.reason?.code === 'idle_limit' ? (run.idle_ms ?? 0) : run.timeout_ms;
  return ms ? duration(ms).replace(/ 00 [sm]$/, '') : 'its limit';
}

function end(run: Told): string {
  const who = person(run);
  if (who) return `killed by ${who}`;
  const code = run.reason?.code;
  if (code?.endsWith('_limit')) return code.replace('_', ' ');
  if (code === 'left') return 'client left';
  return run.signal == null ? 'killed' : `signal ${run.signal}`;
}
