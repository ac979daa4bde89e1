// Asks the server what it makes of a command.
import { api } from '../../api/client';
import type { Explanation } from '../../api/schema';
import { route } from '../../lib/route.svelte';

/** As whom and where, as the address says. */
class Whom {
  principal = $derived(route.query.get('agent'));
  sandbox = $derived(route.query.get('sandbox'));
}

const whom = new Whom();

export function explain(command: string, signal: AbortSignal, draft: string | null = null): Promise<Explanation> {
  const { principal, sandbox } = whom;
  return api.post('/policies/explain', { body: { command, principal, sandbox, draft }, signal });
}
