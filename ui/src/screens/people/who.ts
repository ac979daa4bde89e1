// What is said of somebody in few words.
import type { PersonView, Run, SandboxInfo, TokenInfo } from '../../api/schema';

/** Tokens that let somebody in. */
export function counting(tokens: TokenInfo[], now: number): TokenInfo[] {
  return tokens.filter(
    ({ revoked_at, expires_at }) => !revoked_at && (!expires_at || Date.parse(expires_at) > now),
  );
}

/** When somebody last came with a token. */
export function seen({ tokens }: Pick<PersonView, 'tokens'>): string | undefined {
  const times = tokens.flatMap(({ last_used_at }) => last_used_at ?? []);
  return times.sort().at(-1);
}

/** The names of sandboxes, by their ids; nothing for everywhere. */
export function labels(ids: string[] | null | undefined, all: SandboxInfo[]): string[] | undefined {
  return ids?.map((id) => all.find(({ sandbox_id }) => sandbox_id === id)?.label ?? id);
}

/** How many runs asked a person, and how many of these a person allowed. */
export function asked(runs: Pick<Run, 'approval_id' | 'approved_by'>[]): { asked: number; approved: number } {
  const asked = runs.filter(({ approval_id }) => approval_id);
  return { asked: asked.length, approved: asked.filter(({ approved_by }) => approved_by).length };
}
