import { beforeAll, expect, test, vi } from 'vitest';
import { codes } from './characters';
import { flat, hidden, type Manner, pieces } from './safe';
import cases from './safe.cases.json';
import { characters } from './unicode.svelte';

beforeAll(async () => {
  // Before anything is known of it, a character may be anything.
  expect(flat('ж ∕ \u202e é “x”')).toBe('⟦U+0436⟧ ⟦U+2215⟧ ⟦U+202E⟧ é “x”');
  expect(flat('“', { command: true })).toBe('⟦U+201C⟧');
  await vi.waitFor(() => expect(characters()).toBeDefined());
});

test('plain text is one piece', () => {
  expect(pieces('git status --short')).toEqual([{ text: 'git status --short' }]);
  expect(pieces('Grüße, 日本語, ελληνικά и русский')).toHaveLength(1);
});

test('what cannot be seen is shown by its code', () => {
  const cases: [string, string][] = [
    ['a\u202eb', 'a⟦U+202E⟧b'],
    ['a\u200bb', 'a⟦U+200B⟧b'],
    ['a\u0000\u001b[31m', 'a⟦U+0000⟧⟦U+001B⟧[31m'],
    ['a\ufe0f', 'a⟦U+FE0F⟧'],
    ['\u{e0041}', '⟦U+E0041⟧'],
    ['a\u2028b', 'a⟦U+2028⟧b'],
    ['a\u00a0b', 'a⟦U+00A0⟧b'],
    ['a\rb\r\n', 'a⟦U+000D⟧b⟦U+000D⟧\n'],
    ['a\ud800b', 'a⟦U+D800⟧b'],
  ];
  for (const [text, shown] of cases) expect(flat(text), shown).toBe(shown);
});

test('letters that pass for Latin ones are shown in Latin words and hosts', () => {
  expect(flat('p\u0430ypal')).toBe('p⟦U+0430⟧ypal');
  expect(flat('https://ex\u0430mple.dev/x')).toBe('https://ex⟦U+0430⟧mple.dev → xn--exmple-4nf.dev/x');
  expect(flat('https://\u0430\u0440\u0440\u04cf\u0435.com')).toContain('⟦U+0430⟧');
  expect(flat('слово word')).toBe('слово word');
});

test('commands show tabs and spaces at the end of a line', () => {
  const shown = (text: string) =>
    pieces(text, { command: true })
      .map((piece) => (piece.faint ? `{${piece.text}}` : piece.text))
      .join('');
  expect(shown('a\tb')).toBe('a{⇥}b');
  expect(shown('a  \nb ')).toBe('a{··}\nb{·}');
  expect(shown('a b  c')).toBe('a b  c');
});

test('hidden characters are counted', () => {
  expect(hidden('ls')).toBe(0);
  expect(hidden('\u202eaр\u200b')).toBe(3);
  expect(hidden('a\tb')).toBe(0);
});

const MANNERS: Manner[] = [{ command: true }, {}, { prose: true }];

// The browser may be of an older version of Unicode than the server.
const KNOWN = /^\p{Assigned}$/u;

test.each([
  ['alone', cases.alone, (c: string) => c],
  ['inside of a word', cases.inside, (c: string) => `a${c}b`],
] as const)('every code point is shown as the server shows it, %s', { timeout: 120_000 }, (_, ranges, put) => {
  MANNERS.forEach((manner, index) => {
    const raw = new Set(codes(ranges[index]!));
    const wrong: string[] = [];
    for (let first = 0x80; first <= 0x10ffff; first += 0x1000) {
      const chunk: string[] = [];
      // Planes of nothing but private use and what is not assigned: the edges will do.
      const size = (first > 0x40000 && first < 0xe0000) || first > 0xf0000 ? 16 : 0x1000;
      for (let code = first; code < first + size && code <= 0x10ffff; code += 1) chunk.push(String.fromCodePoint(code));
      const shown = new Set<string>();
      for (const piece of pieces(chunk.map(put).join('\n'), manner))
        if (piece.code === undefined) for (const c of piece.text) shown.add(c);
      for (const c of chunk) {
        const expected = raw.has(c.codePointAt(0)!);
        // Where the server knows a character and the browser does not, a code is right, too.
        if (shown.has(c) !== expected && (!expected || KNOWN.test(c))) wrong.push(c.codePointAt(0)!.toString(16));
      }
    }
    expect(wrong, JSON.stringify(manner)).toEqual([]);
  });
});

test('texts are shown as the server shows them', () => {
  // The ASCII form of a host's name is only said here.
  const shown = (text: string, manner: Manner) => flat(text, manner).replaceAll(/ → [^/ ]*/g, '');
  for (const { text, command, names, prose } of cases.texts) {
    expect(shown(text, { command: true }), text).toBe(command);
    expect(shown(text, {}), text).toBe(names);
    expect(shown(text, { prose: true }), text).toBe(prose);
  }
});
