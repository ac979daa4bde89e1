// Which part of a command met which rule.
import type { Explanation, PartView } from '../../api/schema';

export interface Row {
  part: PartView;
  /** The rule that it met, as it is numbered for people. */
  rule: { number: number; name: string } | undefined;
}

export function rows(told: Pick<Explanation, 'parts' | 'rules'>): Row[] {
  return told.parts.map((part) => {
    const rule = part.rule == null ? undefined : told.rules[part.rule];
    return { part, rule: rule && { number: (part.rule ?? 0) + 1, name: rule.name } };
  });
}

/** The rules that decided about the whole, by their index. */
export function deciding(told: Pick<Explanation, 'parts' | 'verdict'>): Set<number> {
  const decided = told.parts.filter(({ verdict }) => verdict === told.verdict);
  return new Set(decided.flatMap(({ rule }) => (rule == null ? [] : [rule])));
}
