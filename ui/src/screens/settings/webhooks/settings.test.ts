import { expect, test } from 'vitest';
import { draft, wish } from './settings';

test('what is not changed is not wished for', () => {
  const usual = wish(draft(), 'Europe/Vienna');
  expect(usual).toEqual({
    label: '',
    format: 'json',
    delay_seconds: 30,
    high_risk_at_once: true,
    never_quiet: true,
    everywhere: true,
    topics: ['approval.waiting'],
    long_minutes: 10,
  });
});

test('quiet hours go with the clock of whoever sets them', () => {
  const from = { ...draft(), url: ' https://x ', quiet: true, everywhere: false, sandboxes: ['a'] };
  const wished = wish(from, 'Europe/Vienna');
  expect(wished.url).toBe('https://x');
  expect(wished.quiet).toEqual({ from: '22:00', to: '07:00', zone: 'Europe/Vienna' });
  expect(wished.never_quiet).toBeUndefined();
  expect(wished.sandboxes).toEqual(['a']);
});

test('a token goes only where there is one', () => {
  expect(wish({ ...draft(), token: 'tk' }, 'UTC').secret).toBeUndefined();
  expect(wish({ ...draft(), token: ' tk ', format: 'ntfy' }, 'UTC').secret).toBe('tk');
});
