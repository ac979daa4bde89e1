// Does something that the server may refuse, and says so in words.
import { Refusal } from '../api/client';
import { text } from '../text';

/** Returns what went wrong, as a sentence; empty if nothing did. */
export async function attempt(what: string, deed: () => Promise<unknown>): Promise<string> {
  try {
    await deed();
    return '';
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return text.couldNot(what, error);
  }
}
