// One rule as it is filled in, and as the server reads it.
import type { RuleForm, Verdict } from '../../api/schema';

export const EFFECTS = ['write', 'delete', 'execute', 'network', 'privilege', 'device', 'secret', 'process'] as const;

/** Lists of which one entry is enough, each with a field of its own. */
export const LISTS = ['program', 'args', 'paths', 'hosts'] as const;

export interface Fields {
  name: string;
  verdict: Verdict;
  /** It is about changes of files. */
  change: boolean;
  /** Commands like these, or anything that has all of what is said. */
  by: 'patterns' | 'table';
  /** One on each line, as all lists are. */
  patterns: string;
  lists: Record<(typeof LISTS)[number], string>;
  effects: string[];
  agents: string;
  sandboxes: string;
  until: string;
  note: string;
  matches: string;
  misses: string;
}

/** What a new rule begins as. */
export const NEW: RuleForm = empty();

function empty(): RuleForm {
  const none: string[] = [];
  return {
    name: '',
    verdict: 'ask',
    change: false,
    patterns: none,
    table: {},
    kinds: none,
    who: '',
    agents: none,
    sandboxes: none,
    until: '',
    because: '',
    says: '',
    remedy: '',
    code: '',
    matches: none,
    misses: none,
  };
}

export function toFields(rule: RuleForm): Fields {
  const list = (key: string) => (rule.table[key] ?? []).join('\n');
  return {
    name: rule.name,
    verdict: rule.verdict,
    change: rule.change,
    by: Object.keys(rule.table).length ? 'table' : 'patterns',
    patterns: rule.patterns.join('\n'),
    lists: { program: list('program'), args: list('args'), paths: list('paths'), hosts: list('hosts') },
    effects: rule.table.effects ?? [],
    agents: rule.agents.join('\n'),
    sandboxes: rule.sandboxes.join('\n'),
    until: rule.until,
    note: rule.because,
    matches: rule.matches.join('\n'),
    misses: rule.misses.join('\n'),
  };
}

/** What there is no field for stays as it was. */
export function toRule(fields: Fields, before: RuleForm): RuleForm {
  const kept = Object.entries(before.table).filter(([key]) => !isField(key));
  const lists = LISTS.map((key) => [key, lines(fields.lists[key])] as const).filter(([, list]) => list.length);
  const effects = fields.effects.length ? [['effects', fields.effects] as const] : [];
  const table = fields.by === 'table' ? Object.fromEntries([...kept, ...lists, ...effects]) : {};
  return {
    ...before,
    name: fields.name.trim(),
    verdict: fields.verdict,
    patterns: fields.by === 'patterns' ? lines(fields.patterns) : [],
    table,
    agents: lines(fields.agents),
    sandboxes: lines(fields.sandboxes),
    until: fields.until.trim(),
    because: fields.note.trim(),
    matches: lines(fields.matches),
    misses: lines(fields.misses),
  };
}

/** Whether it says what it is about. */
export function isAbout(rule: RuleForm): boolean {
  return rule.patterns.length > 0 || Object.keys(rule.table).length > 0;
}

/** What only the text can change. */
export function beyond(rule: RuleForm): [string, string[]][] {
  return Object.entries(rule.table).filter(([key]) => !isField(key));
}

function isField(key: string): boolean {
  return key === 'effects' || LISTS.some((name) => name === key);
}

function lines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
}
