// The parts of a command in the order that people read them.
import type { PartView } from '../api/schema';
import { text } from './text';

interface Row {
  part: PartView;
  /** Its place in what the server said. */
  index: number;
}

const STRICT = { auto: 0, ask: 1, reject: 2 };

/** What contains others comes before them, as in the text. What is only
 * possible is shown where it decided something. */
export function order(parts: PartView[]): Row[] {
  const sure = new Map<string, PartView>();
  for (const part of parts) if (!part.possible) sure.set(String(part.span), part);
  const matters = ({ part }: Row) => {
    if (!part.possible) return true;
    const same = sure.get(String(part.span));
    return part.verdict !== 'auto' && (!same || STRICT[same.verdict] < STRICT[part.verdict]);
  };
  return parts
    .map((part, index) => ({ part, index }))
    .filter(matters)
    .sort((a, b) => a.part.span[0] - b.part.span[0] || length(b) - length(a));
}

// What stands nowhere in the text, as a variable of the request, comes before.
function length({ part: { span } }: Row): number {
  return span[1] - span[0] || Infinity;
}

/** How a part follows the one before, if that is worth a word. */
export function linked(part: PartView, before?: PartView): keyof typeof text.links | undefined {
  if (part.possible) return 'possible';
  if (part.link === 'with') return undefined;
  const deeper = before !== undefined && before.depth < part.depth;
  if (part.link === 'inside' || (part.link === 'then' && deeper)) return 'inside';
  return before ? part.link : undefined;
}

/** What is known of a part beyond its sentence. */
export function factsOf(part: PartView): { name: string; values: string[] }[] {
  const options = part.options
    .filter(({ means }) => means)
    .map(({ name, value, means }) => ({ name: value ? `${name} ${value}` : name, values: [means] }));
  const named = (Object.keys(text.facts) as (keyof typeof text.facts)[])
    .filter((name) => part[name].length)
    .map((name) => ({ name: text.facts[name], values: part[name] }));
  return [...options, ...named];
}
