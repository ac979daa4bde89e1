import { beforeAll, describe, expect, it, vi } from 'vitest';
import { segments, stretches } from './spans';
import { characters } from './unicode.svelte';

beforeAll(() => vi.waitFor(() => expect(characters()).toBeDefined()));

const texts = (found: { text: string }[]) => found.map(({ text }) => text);

describe('segments', () => {
  it('are whole words where the server says so, counted in bytes', () => {
    const found = segments('écho ü x', [
      { start: 0, end: 5, kind: 'program' },
      { start: 6, end: 8, kind: 'argument' },
      { start: 9, end: 10, kind: 'argument' },
    ]);
    expect(texts(found)).toEqual(['écho', ' ', 'ü', ' ', 'x']);
    expect(found.map(({ kind }) => kind)).toEqual([
      'program',
      undefined,
      'argument',
      undefined,
      'argument',
    ]);
    expect(found.at(-1)).toMatchObject({ start: 9, end: 10 });
  });

  it('show what is hidden by its code, and go on at the right place', () => {
    const found = segments('a\u202eb\tc', [{ start: 5, end: 6, kind: 'argument' }]);
    expect(found[1]).toMatchObject({ code: 'U+202E', start: 1, end: 4 });
    expect(found[3]).toMatchObject({ text: '⇥', start: 5, end: 6, kind: 'argument' });
    expect(found.at(-1)).toMatchObject({ text: 'c', start: 6, end: 7 });
  });

  it('know the innermost of tokens that lie in each other', () => {
    const found = segments('a "$b" c', [
      { start: 0, end: 1, kind: 'program' },
      { start: 2, end: 6, kind: 'argument' },
      { start: 3, end: 5, kind: 'expansion' },
    ]);
    expect(found.filter(({ kind }) => kind).map(({ text, kind }) => [text, kind])).toEqual([
      ['a', 'program'],
      ['"', 'argument'],
      ['$b', 'expansion'],
      ['"', 'argument'],
    ]);
  });

  it('mark the program of what a reason is about, or all of it', () => {
    const tokens = [
      { start: 0, end: 2, kind: 'program' as const },
      { start: 3, end: 4, kind: 'argument' as const },
      { start: 5, end: 6, kind: 'operator' as const },
      { start: 7, end: 8, kind: 'file' as const },
    ];
    const found = segments('rm x > y', tokens, [{ span: [0, 4] }, { span: [5, 8] }, { span: null }]);
    const marked = found.filter(({ reason }) => reason !== undefined);
    expect(marked.map(({ text, reason }) => [text, reason])).toEqual([
      ['rm', 0],
      ['>', 1],
      [' ', 1],
      ['y', 1],
    ]);
    expect(stretches(found).map(({ reason, segments }) => [reason, texts(segments).join('')])).toEqual([
      [0, 'rm'],
      [undefined, ' x '],
      [1, '> y'],
    ]);
  });

  it('say what a host is called on the network', () => {
    const found = segments('curl https://ex\u0430mple.dev/x', [{ start: 0, end: 4, kind: 'program' }]);
    expect(found.find(({ aside }) => aside)?.text).toBe(' → xn--exmple-4nf.dev');
    expect(found.at(-1)).toMatchObject({ text: '/x', end: 27 });
  });
});
