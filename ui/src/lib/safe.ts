// Takes text from anywhere apart into what can be shown and what must be
// shown by its code, as the server does for the command line (engine/safe.rs).

/** A piece of a text; `code` where a person would not see it for what it is. */
export interface Piece {
  text: string;
  code?: string;
  /** A tab or a space at a line's end, which only commands show. */
  faint?: boolean;
  /** Said beside the text and no part of it: the ASCII form of a host's name. */
  aside?: boolean;
}

const HIDDEN =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0009\u000b-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/u;
const LOOK_ALIKE = /[\u0370-\u03ff\u0400-\u052f\u1f00-\u1fff]/u;
const LATIN = /[A-Za-z]/;
const WORD = /[\p{L}\p{N}\p{Alphabetic}]/u;

/** What most texts are, in which nothing has to be looked for. */
const ASCII = /^[\n\x20-\x7e]+$/;

/** Takes a text apart. */
export function pieces(text: string, { command = false } = {}): Piece[] {
  if (ASCII.test(text) && !(command && / (\n|$)/.test(text))) return [{ text }];
  const found: Piece[] = [];
  const plain = (part: string) => {
    const last = found.at(-1);
    if (last && isPlain(last)) last.text += part;
    else found.push({ text: part });
  };
  for (const { text: word, host } of words(text)) {
    const mixed = LATIN.test(word);
    for (const c of word) {
      if (c === '\t' && command) found.push({ text: '⇥', faint: true });
      else if (HIDDEN.test(c) || (mixed && LOOK_ALIKE.test(c))) found.push({ text: c, code: code(c) });
      else plain(c);
    }
    const ascii = host && asciiOf(word);
    if (ascii) found.push({ text: ` → ${ascii}`, aside: true });
  }
  return command ? withEnds(found) : found;
}

/** Whether a piece is shown as it is. */
export function isPlain({ code, faint, aside }: Piece): boolean {
  return code === undefined && !faint && !aside;
}

/** How many characters of a text appear by their code. */
export function hidden(text: string): number {
  return pieces(text, { command: true }).filter((piece) => piece.code !== undefined).length;
}

/** The text with codes in place of what is hidden, where there is no markup. */
export function flat(text: string): string {
  return pieces(text)
    .map(({ text, code }) => (code === undefined ? text : `⟦${code}⟧`))
    .join('');
}

function code(c: string): string {
  return `U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`;
}

// What a host's name is on the network, where that is not what is read.
function asciiOf(word: string): string | undefined {
  const name = [...word].filter((c) => WORD.test(c) || c === '.' || c === '-').join('');
  // eslint-disable-next-line no-control-regex
  if (/^[\x00-\x7f]*$/.test(name)) return undefined;
  try {
    return new URL(`http://${name}`).hostname;
  } catch {
    return undefined;
  }
}

interface Word {
  text: string;
  /** It is the name of a host, as far as one can tell. */
  host: boolean;
}

// After all that is no letter or digit; the name of a host stays whole, since
// its last part is Latin in most, and all before it may pass for Latin.
function words(text: string): Word[] {
  const found: Word[] = [];
  let word = '';
  let inHost = false;
  let before = '';
  for (const c of text) {
    word += c;
    before = (before + c).slice(-3);
    if (WORD.test(c) || (inHost && (c === '.' || c === '-'))) continue;
    // What ends a host's name does not belong to it.
    if (inHost) found.push({ text: word.slice(0, -c.length), host: true }, { text: c, host: false });
    else found.push({ text: word, host: false });
    word = '';
    inHost = before === '://' || (inHost && c === '@');
  }
  found.push({ text: word, host: inHost });
  return found;
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
