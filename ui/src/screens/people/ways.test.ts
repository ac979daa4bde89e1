import { expect, test } from 'vitest';
import { texts, WAYS } from './ways';

const TOKEN = 'wl_0123';
const ORIGIN = 'http://127.0.0.1:7777';

test('every way has the token in each of its texts, and the address unless it is local', () => {
  for (const [way] of WAYS) {
    for (const { text } of texts(way, ORIGIN, TOKEN)) {
      expect(text).toContain(TOKEN);
      expect(text.includes(ORIGIN)).toBe(way !== 'stdio');
    }
  }
});

test('what goes into settings is JSON', () => {
  for (const way of ['stdio', 'http'] as const) {
    const settings = texts(way, ORIGIN, TOKEN)[1]!;
    expect(Object.keys(JSON.parse(settings.text) as object)).toEqual(['mcpServers']);
  }
});
