// Takes text from anywhere apart into what can be shown and what must be
// shown by its code, as the server does for the command line (screen/src/safe.rs).
import { characters } from './unicode.svelte';

/** A piece of a text; `code` where a person would not see it for what it is. */
export interface Piece {
  text: string;
  code?: string;
  /** A tab or a space at a line's end, which only commands show. */
  faint?: boolean;
  /** Said beside the text and no part of it: the ASCII form of a host's name. */
  aside?: boolean;
}

/** How strictly a text is looked at; see screen/src/safe.rs. */
export interface Manner {
  /** It is run: nothing in it may pass for ASCII, and spaces matter. */
  command?: boolean;
  /** Sentences and output, in whatever language; with `command`, spaces matter. */
  prose?: boolean;
}

/** What most texts are, in which nothing has to be looked for. */
const ASCII = /^[\n\x20-\x7e]+$/;

/** Takes a text apart. */
export function pieces(text: string, manner: Manner = {}): Piece[] {
  const { command = false } = manner;
  if (ASCII.test(text) && !(command && / (\n|$)/.test(text))) return [{ text }];
  const found: Piece[] = [];
  const plain = (part: string) => {
    const last = found.at(-1);
    if (last && isPlain(last)) last.text += part;
    else found.push({ text: part });
  };
  const chars = [...text];
  // eslint-disable-next-line no-control-regex
  const known = /[^\x00-\x7f]/.test(text) ? characters() : undefined;
  const { coded, hosts } = known?.inspect(chars, manner) ?? unknown(chars, manner);
  chars.forEach((c, at) => {
    if (c === '\t' && command) found.push({ text: '⇥', faint: true });
    else if (coded[at]) found.push({ text: c, code: code(c) });
    else plain(c);
    const ascii = asciiOf(hosts.get(at + 1) ?? '');
    if (ascii) found.push({ text: ` → ${ascii}`, aside: true });
  });
  return command ? withEnds(found) : found;
}

/** Whether a piece is shown as it is. */
export function isPlain({ code, faint, aside }: Piece): boolean {
  return code === undefined && !faint && !aside;
}

/** How many characters of a command a person would not see for what they are. */
export function hidden(text: string): number {
  return pieces(text).filter(({ code }) => code !== undefined && code !== 'U+0009').length;
}

/** The text with codes in place of what is hidden, where there is no markup. */
export function flat(text: string, manner: Manner = {}): string {
  return pieces(text, manner)
    .map(({ text, code }) => (code === undefined ? text : `⟦${code}⟧`))
    .join('');
}

function code(c: string): string {
  return `U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`;
}

// As long as nothing is known of characters: all but the most common are coded.
function unknown(chars: string[], { command = false }: Manner) {
  const common = /^[\n\x20-\x7e\u00c0-\u00c5\u00c7-\u00d6\u00d8-\u00e5\u00e7-\u00f6\u00f8-\u00fd\u00ff·—→✓]$/;
  const typographic = /^[‘’“”…×]$/;
  const coded = chars.map((c) => !common.test(c) && (command || !typographic.test(c)));
  return { coded, hosts: new Map<number, string>() };
}

// What a host's name is on the network, where that is not what is read.
function asciiOf(name: string): string | undefined {
  // eslint-disable-next-line no-control-regex
  if (/^[\x00-\x7f]*$/.test(name)) return undefined;
  try {
    return new URL(`http://${name}`).hostname;
  } catch {
    return undefined;
  }
}

// Spaces at the end of a line matter to a shell.
function withEnds(found: Piece[]): Piece[] {
  return found.flatMap((piece, at) => {
    if (!isPlain(piece)) return [piece];
    const last = at === found.length - 1;
    return piece.text.split(/( +(?=\n)| +$)/).flatMap((part, index, all): Piece[] => {
      const atEnd = /^ +$/.test(part) && (all[index + 1]?.startsWith('\n') || last);
      if (!part) return [];
      return [atEnd ? { text: '·'.repeat(part.length), faint: true } : { text: part }];
    });
  });
}
