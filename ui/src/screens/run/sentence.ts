// What a run does, in one sentence that is ours and not the agent's: made as
// the server makes it for questions.
import type { PartView } from '../../api/schema';

/** Things named before it is “and 2 more”. */
const TOLD = 3;

const STEERS = /^is part of the shell/;

/** One sentence about what a command does; empty if nothing is known. */
export function sentence(parts: PartView[]): string {
  const deeds = parts.filter((part) => !part.possible).map(deed).filter(Boolean);
  // What only steers the shell is told where there is nothing else.
  const real = deeds.filter((does) => !STEERS.test(does));
  const told = [...new Set(real.length ? real : deeds)];
  const more = told.length - TOLD;
  const text = told.slice(0, TOLD).join(', then ') + (more > 0 ? `, and ${more} more` : '');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function deed(part: PartView): string {
  const known = [
    ['deletes', part.deletes],
    ['writes', part.writes],
    [verbOfNetwork(part), part.hosts],
  ] as const;
  const deeds = known.filter(([, things]) => things.length).map(([verb, things]) => `${verb} ${named(things)}`);
  if (deeds.length) return deeds.join(' and ');
  if (part.unknown && part.runs.length) return `unknown: runs ${named(part.runs)}`;
  if (part.unknown && !part.does) return 'has unpredictable effects';
  // A dot by itself is a directory, and no full stop.
  return part.does.replace(/(?<=\S)\.$/, '');
}

/** What a part does on the network, by what its program is known to do. */
function verbOfNetwork({ does }: PartView): string {
  if (does.startsWith('pushes ')) return 'pushes to';
  return does.startsWith('fetches ') ? 'fetches from' : 'connects to';
}

function named(things: string[]): string {
  const all = [...new Set(things)];
  const more = all.length - TOLD;
  return all.slice(0, TOLD).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
