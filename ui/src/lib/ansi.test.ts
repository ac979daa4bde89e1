import { describe, expect, it } from 'vitest';
import type { SpanView } from '../api/schema';
import { spans } from './ansi';

const look = (start: number, end: number, more: Partial<SpanView> = {}) => ({ start, end, ...more }) as SpanView;

describe('how a line looks', () => {
  it('is plain where nothing is said', () => {
    expect(spans('plain', [])).toEqual([{ text: 'plain', marks: [] }]);
    expect(spans('', [])).toEqual([]);
  });

  it('has colours and weights', () => {
    const found = spans('bold red plain', [look(0, 4, { bold: true }), look(5, 8, { fg: '1', underline: true })]);
    expect(found).toEqual([
      { text: 'bold', marks: ['bold'] },
      { text: ' ', marks: [] },
      { text: 'red', marks: ['underline'], color: 'rgb(255 128 126)' },
      { text: ' plain', marks: [] },
    ]);
  });

  it('has the colours of the cube, and any', () => {
    expect(spans('x', [look(0, 1, { fg: '208' })])[0]).toMatchObject({ color: 'rgb(255 135 0)' });
    expect(spans('x', [look(0, 1, { fg: '#01c803' })])[0]).toMatchObject({ color: 'rgb(1 200 3)' });
    expect(spans('x', [look(0, 1, { inverse: true })])[0]).toMatchObject({ color: 'rgb(12 15 22)' });
  });

  it('counts as the server does beyond ASCII', () => {
    const text = spans('ä😀red€', [look(6, 9, { fg: '1' })]).map(({ text }) => text);
    expect(text).toEqual(['ä😀', 'red', '€']);
  });

  it('never hides text in its ground', () => {
    expect(spans('hidden', [look(0, 6, { fg: '#0c0f16' })])[0]).toMatchObject({ color: 'rgb(230 232 236)' });
    expect(spans('hidden', [look(0, 6, { bg: '#e6e8ec' })])[0]).toMatchObject({ color: 'rgb(12 15 22)' });
  });

  it('ends with the line, whatever is said', () => {
    expect(spans('ab', [look(1, 99, { bold: true })]).map(({ text }) => text)).toEqual(['a', 'b']);
  });
});
