import { expect, test } from 'vitest';
import { fitting, scaled, type Measure } from './measure';

const measure: Measure = (font) => ({ width: font * 0.6, height: font * 1.2 });

test('the font is as large as the whole terminal allows', () => {
  expect(scaled({ columns: 80, rows: 24 }, { width: 2000, height: 2000 }, measure)).toBe(16);
  expect(scaled({ columns: 80, rows: 24 }, { width: 480, height: 2000 }, measure)).toBe(10);
  expect(scaled({ columns: 80, rows: 24 }, { width: 2000, height: 290 }, measure)).toBe(10);
});

test('it never gets too small to be read', () => {
  expect(scaled({ columns: 300, rows: 24 }, { width: 390, height: 500 }, measure)).toBe(8);
});

test('who types has what fits into the window', () => {
  expect(fitting({ width: 1000, height: 480 }, { width: 8.4, height: 17 })).toEqual({
    columns: 119,
    rows: 28,
  });
  expect(fitting({ width: 3, height: 3 }, { width: 8, height: 17 })).toEqual({ columns: 2, rows: 2 });
  expect(fitting({ width: 9e6, height: 9e6 }, { width: 8, height: 17 })).toEqual({
    columns: 500,
    rows: 500,
  });
});
