// The rule composer: its texts, and what is sent when somebody saves.
import type { NewGrant, ScopeView } from '../../api/schema';
import { many } from '../../lib/time';

export const text = {
  title: 'Always allow',
  keepAsking: (program: string) => `Keep asking for ${program}`,
  own: 'Write my own pattern…',
  ownLabel: 'Pattern',
  matched: (matched: number, of: number) => `${matched} of your last ${of}`,
  refused: (number: number) => `would also allow ${many(number, 'command')} you rejected`,
  allowed: 'Allowed already: ',
  for: 'For',
  until: 'until',
  note: 'Block rules override this one. You can revoke it under Policies.',
  save: (rules: number, then: string) =>
    rules ? `Save ${many(rules, 'rule')} and ${then}` : `Only ${then}`,
  apply: 'apply',
  approve: 'approve',
  what: 'what could be allowed',
  untils: {
    session: 'this agent session ends',
    hour: '1 hour',
    today: 'end of today',
    week: '7 days',
    removed: 'until I remove it',
  },
};

/** Takes a label apart: the command that it may begin with is code. */
export function parted(label: string): [code: string, rest: string] {
  const code = /^.+?(?= (?:on|inside|with any arguments)\b)/.exec(label)?.[0] ?? '';
  return [code, label.slice(code.length)];
}

/** The same composer for what is blocked. */
export const block = {
  title: 'Block from now on',
  keep: (program: string) => `Do not block ${program}`,
  what: 'what could be blocked',
  note: 'For everyone, in every sandbox. You can change or remove this rule under Policies.',
  none: 'You can write a rule for it under Policies.',
  save: (rules: number) => (rules ? `Reject and save ${many(rules, 'rule')}` : 'Only reject'),
};

export type Until = keyof typeof text.untils;

/** When a grant ends, in seconds since 1970. */
export function endsAt(until: Until, now: Date): number | null {
  const seconds = Math.floor(now.getTime() / 1000);
  if (until === 'hour') return seconds + 3600;
  if (until === 'week') return seconds + 7 * 86_400;
  if (until === 'today') return Math.floor(new Date(now).setHours(24, 0, 0, 0) / 1000);
  return null;
}

/** What is allowed by these patterns, each once. */
export function grants(
  patterns: string[],
  scope: ScopeView,
  until: Until,
  session: string | null | undefined,
  now = new Date(),
): NewGrant[] {
  const wanted = [...new Set(patterns.map((pattern) => pattern.trim()).filter(Boolean))];
  return wanted.map((pattern) => ({
    pattern,
    agent: scope.agent ?? null,
    sandbox: scope.sandbox ?? null,
    session: until === 'session' ? (session ?? null) : null,
    until: endsAt(until, now),
  }));
}
