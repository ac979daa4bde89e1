import { expect, test } from 'vitest';
import { flat, hidden, pieces } from './safe';

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
