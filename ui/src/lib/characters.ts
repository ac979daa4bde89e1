// Which characters of a text are shown by their code, as the server decides it
// (screen/src/safe.rs), whose tests make the table and the cases that this is held
// to. Most texts are ASCII, so this is loaded when one is not (unicode.svelte.ts).
import { IN_OWN_SCRIPT, IN_PROSE, NOT_IN_COMMANDS, NOWHERE } from './look-alikes';
import type { Manner } from './safe';

/** What was found in a text. */
export interface Found {
  /** Which of its characters are shown by their code. */
  coded: boolean[];
  /** The names of hosts in it, by where they end. */
  hosts: Map<number, string>;
}

// eslint-disable-next-line no-control-regex
const ASCII_ONE = /^[\x00-\x7f]$/;
const LATIN = /[A-Za-z]/;
const WORD = /^[\p{L}\p{M}\p{N}]$/u;
const MARK = /^\p{M}$/u;
const EMOJI = /^\p{Emoji}$/u;
// Neither letter, mark, number, punctuation nor symbol, or made to be ignored.
// New characters that the browser does not know are hidden, too.
const HIDDEN = /^(?:[^\p{L}\p{M}\p{N}\p{P}\p{S} ]|\p{Default_Ignorable_Code_Point}|[\ufffc\u{1d159}\u{13441}\u{13442}\u{16fe4}])$/u;

/** Where a character may be shown as it is. */
type Class = 'plain' | 'nowhere' | 'in prose' | 'not in commands' | 'in own script';

const table = new Map<number, Class>();
for (const [ranges, kind] of [
  [NOWHERE, 'nowhere'],
  [IN_PROSE, 'in prose'],
  [NOT_IN_COMMANDS, 'not in commands'],
  [IN_OWN_SCRIPT, 'in own script'],
] as const)
  for (const code of codes(ranges)) table.set(code, kind);

/** Reads pairs of how many are left out and how many follow. */
export function* codes(ranges: string): Generator<number> {
  let at = 0;
  for (const pair of ranges.split(' ')) {
    const [gap, count = '1'] = pair.split('.');
    at += parseInt(gap!, 36);
    for (let left = parseInt(count, 36); left > 0; left -= 1) yield at++;
  }
}

function classOf(c: string): Class {
  if (HIDDEN.test(c)) return 'nowhere';
  return ASCII_ONE.test(c) ? 'plain' : (table.get(c.codePointAt(0)!) ?? 'plain');
}

// Scripts that languages use together, each also with Latin; and scripts that
// stand alone in a word.
const TOGETHER = ('Han}\\p{scx=Hira}\\p{scx=Kana Han}\\p{scx=Bopo Han}\\p{scx=Hang Arab Armn Beng Deva Ethi ' +
  'Geor Gujr Guru Hebr Knda Khmr Laoo Mlym Mymr Orya Sinh Taml Telu Thaa Thai Tibt').split(' ');
const SHARED = '\\p{scx=Zyyy}\\p{scx=Zinh}';
const LATIN_TOO = new RegExp(`^[${SHARED}\\p{scx=Latn}]$`, 'u');
const HOMES = [
  ...TOGETHER.map((scripts) => new RegExp(`^[${SHARED}\\p{scx=Latn}\\p{scx=${scripts}}]*$`, 'u')),
  ...['Cyrl', 'Grek'].map((script) => new RegExp(`^[${SHARED}\\p{scx=${script}}]*$`, 'u')),
];

// What the word that a character stands in tells about it.
function natureOf(word: string[], host: boolean, { command = false, prose = false }: Manner) {
  const text = word.join('');
  const latin = LATIN.test(text) || (!prose && /\p{sc=Latn}/u.test(text));
  const letters = word.filter((c) => WORD.test(c)).join('');
  const mixed = (!prose || LATIN.test(text)) && !HOMES.some((home) => home.test(letters));
  const own = word.some((c) => !ASCII_ONE.test(c) && WORD.test(c) && !MARK.test(c) && classOf(c) === 'plain');
  const foreign = (c: string) => mixed && WORD.test(c) && !LATIN_TOO.test(c);
  return (c: string): boolean => {
    switch (classOf(c)) {
      case 'nowhere':
        return true;
      case 'in prose':
        return !prose || foreign(c);
      case 'not in commands':
        return command && !prose;
      case 'plain':
        return foreign(c);
      case 'in own script':
        return LATIN_TOO.test(c) ? !prose || host : latin || mixed || (!prose && !own);
    }
  };
}

// Whether an invisible character does no more than to choose or join emoji.
function joinsEmoji(chars: string[], at: number): boolean {
  const emoji = (c: string | undefined) => c !== undefined && !ASCII_ONE.test(c) && EMOJI.test(c);
  if (chars[at] === '\ufe0f') return emoji(chars[at - 1]);
  if (chars[at] !== '\u200d') return false;
  return emoji(chars[chars[at - 1] === '\ufe0f' ? at - 2 : at - 1]) && emoji(chars[at + 1]);
}

// Whether a mark has nothing to stand on, is of another script than a Latin letter or digit
// below it, or stands on too many others.
function isStacked(chars: string[], at: number): boolean {
  const most = /^\p{sc=Zinh}$/u.test(chars[at]!) ? 2 : 4;
  let count = 0;
  while (count < most && at - count > 0 && MARK.test(chars[at - count - 1]!)) count += 1;
  const base = chars[at - count - 1];
  const stands = base !== undefined && WORD.test(base) && (!LATIN_TOO.test(base) || LATIN_TOO.test(chars[at]!));
  return count === most || !stands || /^\p{Me}$/u.test(chars[at]!) || (count > 0 && chars[at - 1] === chars[at]);
}

/** Looks at a text, character by character. */
export function inspect(chars: string[], manner: Manner): Found {
  const coded: boolean[] = [];
  const hosts = new Map<number, string>();
  for (const { from, to, host } of words(chars)) {
    const word = chars.slice(from, to);
    const hides = word.every((c) => ASCII_ONE.test(c)) ? (c: string) => HIDDEN.test(c) : natureOf(word, host, manner);
    for (let at = from; at < to; at += 1) {
      const c = chars[at]!;
      coded.push(
        c !== '\n' && !joinsEmoji(chars, at) && (hides(c) || (MARK.test(c) && ((coded[at - 1] ?? false) || isStacked(chars, at)))),
      );
    }
    if (host) hosts.set(to, word.join(''));
  }
  return { coded, hosts };
}

interface Word {
  /** Its first character, and one past its last. */
  from: number;
  to: number;
  /** It is the name of a host, as far as one can tell. */
  host: boolean;
}

// Words, and the characters between them. The name of a host stays whole, since
// its last part is Latin in most, and all before it may pass for Latin.
function words(chars: string[]): Word[] {
  const found: Word[] = [];
  let from = 0;
  let host = false;
  chars.forEach((c, at) => {
    if (WORD.test(c) || (host && (c === '.' || c === '-'))) return;
    if (from < at) found.push({ from, to: at, host });
    found.push({ from: at, to: at + 1, host: false });
    from = at + 1;
    host = (c === '/' && chars[at - 1] === '/' && chars[at - 2] === ':') || (host && c === '@');
  });
  if (from < chars.length) found.push({ from, to: chars.length, host });
  return found;
}
