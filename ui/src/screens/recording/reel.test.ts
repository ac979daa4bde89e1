import { expect, test } from 'vitest';
import { happened, header } from './reel';

test('lines of an asciicast are understood', () => {
  expect(header('{"version":2,"width":80,"height":24,"timestamp":7,"title":"x"}')).toEqual({
    size: { columns: 80, rows: 24 },
    timestamp: 7,
    title: 'x',
  });
  expect(happened('[1.5, "o", "\\u001b[1mhi"]')).toEqual({ time: 1.5, kind: 'output', text: '\x1b[1mhi' });
  expect(happened('[2, "r", "100x40"]')).toEqual({
    time: 2,
    kind: 'resize',
    size: { columns: 100, rows: 40 },
  });
  expect(happened('[2, "m", "$ ls"]')).toEqual({ time: 2, kind: 'mark', text: '$ ls' });
});

test('what concerns nobody is left out', () => {
  expect(happened('')).toBeUndefined();
  expect(happened('[2, "i", "typed"]')).toBeUndefined();
  expect(happened('[2, "r", "nonsense"]')).toBeUndefined();
});
