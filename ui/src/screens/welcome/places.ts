// Which sandboxes show commands anything, and who has called already.
import { api } from '../../api/client';
import type { PersonView, SandboxInfo } from '../../api/schema';
import { seen } from '../people/who';

/** A sandbox, and why its directory is not shown to commands, if it is not. */
export interface Place extends SandboxInfo {
  refused: string | undefined;
}

/** Looks at the directories of sandboxes. One that holds more than a project, as
 * a home directory does, could not be chosen; commands do not see it. */
export async function places(signal: AbortSignal): Promise<Place[]> {
  const { sandboxes } = await api.get('/sandboxes', { signal });
  return Promise.all(sandboxes.map(async (one) => ({ ...one, refused: await refusal(one, signal) })));
}

async function refusal({ path, source }: SandboxInfo, signal: AbortSignal): Promise<string | undefined> {
  if (source === 'private') return undefined;
  // What is below no allowed root is in the settings, and was looked at there.
  const folder = await api.get('/folders', { query: { path }, signal }).catch(() => undefined);
  return folder?.refused ?? undefined;
}

/** Whether an agent has come with a token, or asked for a command in any way. */
export async function called(person: PersonView, signal: AbortSignal): Promise<boolean> {
  if (seen(person)) return true;
  const query = { agent: person.principal_id, limit: 1 };
  return (await api.get('/commands', { query, signal })).commands.length > 0;
}
