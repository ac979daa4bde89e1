// The filter of runs: one text, in which `key:value` narrows and everything
// else is looked for in the command. What is typed and what is clicked are the
// same thing.
import type { Run } from '../api/schema';

export const KEYS = [
  'agent',
  'status',
  'verdict',
  'by',
  'sandbox',
  'terminal',
  'since',
  'until',
  'exit',
  'rule',
  'id',
] as const;

export type Key = (typeof KEYS)[number];

/** The exact states, which `status:` takes. */
export const STATES: string[] = [
  'waiting',
  'held',
  'running',
  'succeeded',
  'failed',
  'timed_out',
  'killed',
  'blocked',
  'rejected',
  'expired',
  'withdrawn',
  'lost',
];

const COARSE = ['pending', 'approved', 'executed'];

/** A word of a filter. */
export interface Term {
  /** As it was typed. */
  text: string;
  /** Where it begins in the text. */
  at: number;
  /** The key, if it has one that exists. */
  key?: Key;
  /** What stands before the colon, if that is no key. */
  unknown?: string;
  /** The key that was meant, perhaps. */
  nearest?: Key;
  value: string;
}

/** Takes a filter apart. Quotes keep words together, and colons harmless. */
export function parse(text: string): Term[] {
  const terms: Term[] = [];
  for (const found of text.matchAll(/(?:"[^"]*"?|[^\s"]+)+/g)) {
    const word = found[0];
    const named = /^([a-z]+):(?![:/])(.*)$/s.exec(word);
    const term: Term = { text: word, at: found.index, value: bare(named ? named[2]! : word) };
    const name = named?.[1];
    if (name === undefined) {
      terms.push(term);
      continue;
    }
    if ((KEYS as readonly string[]).includes(name)) term.key = name as Key;
    else {
      term.unknown = name;
      const nearest = near(name);
      if (nearest) term.nearest = nearest;
    }
    terms.push(term);
  }
  return terms;
}

/** The text with another value for a key; without it if there is no value. */
export function put(text: string, key: Key, value: string | undefined): string {
  const kept = parse(text)
    .filter((term) => term.key !== key)
    .map((term) => term.text);
  if (value) kept.push(`${key}:${quoted(value)}`);
  return kept.join(' ');
}

/** The text without one of its terms. */
export function without(text: string, term: Term): string {
  return parse(text)
    .filter(({ at }) => at !== term.at)
    .map((term) => term.text)
    .join(' ');
}

/** The value of a key, if it is there. */
export function valueOf(text: string, key: Key): string | undefined {
  return parse(text).find((term) => term.key === key)?.value;
}

/** What the server is asked: all but the keys that it does not know. */
export function asked(text: string): { q?: string } {
  const known = parse(text).filter(({ unknown, key, value }) => !unknown && (!key || value));
  const q = known.map((term) => closed(term.text)).join(' ');
  return q ? { q } : {};
}

// A quote that is still being typed ends with the word.
function closed(text: string): string {
  return text.split('"').length % 2 ? text : `${text}"`;
}

/** The policy's answer to a run, as far as the run tells. */
export function verdict(run: Run): 'auto' | 'ask' | 'reject' {
  if (run.state === 'blocked') return 'reject';
  return run.approval_id ? 'ask' : 'auto';
}

/** Whether a value is a time: `24h`, `7d` (ago), a date, or a time with its zone. */
export function isTime(value: string): boolean {
  if (/^\d+[smhdw]$/.test(value)) return true;
  return /^\d{4}-\d\d-\d\d/.test(value) && !Number.isNaN(Date.parse(value));
}

/** Whether a value is a status: a state, or one of the coarser words. */
export function isStatus(value: string): boolean {
  return [...STATES, ...COARSE].includes(value);
}

function bare(text: string): string {
  return text.replaceAll('"', '');
}

function quoted(value: string): string {
  return /[\s:"]/.test(value) ? `"${bare(value)}"` : value;
}

function near(name: string): Key | undefined {
  const apart = KEYS.map((key) => ({ key, by: distance(name, key) }));
  const best = apart.reduce((a, b) => (b.by < a.by ? b : a));
  return best.by <= Math.max(1, Math.floor(name.length / 3)) ? best.key : undefined;
}

// How many letters must be changed, added or left out.
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + same));
    }
    row = next;
  }
  return row[b.length]!;
}
