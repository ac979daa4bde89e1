// Who has called already.
import { api } from '../../api/client';
import type { PersonView } from '../../api/schema';
import { seen } from '../people/who';

/** Whether an agent has come with a token, or asked for a command in any way. */
export async function called(person: PersonView, signal: AbortSignal): Promise<boolean> {
  if (seen(person)) return true;
  const query = { agent: person.principal_id, limit: 1 };
  return (await api.get('/commands', { query, signal })).commands.length > 0;
}
