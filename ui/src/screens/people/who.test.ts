import { expect, test } from 'vitest';
import type { SandboxInfo, TokenInfo } from '../../api/schema';
import { asked, counting, labels, seen } from './who';

const token = (more: Partial<TokenInfo>) => ({ token_id: '', ...more }) as TokenInfo;

test('a token counts until it is revoked or its time is up', () => {
  const tokens = [
    token({}),
    token({ revoked_at: '2026-01-01T00:00:00Z' }),
    token({ expires_at: '2026-01-01T00:00:00Z' }),
    token({ expires_at: '2026-01-03T00:00:00Z' }),
  ];
  const at = Date.parse('2026-01-02T00:00:00Z');
  expect(counting(tokens, at)).toEqual([tokens[0], tokens[3]]);
});

test('somebody was seen when the last of their tokens was', () => {
  expect(seen({ tokens: [] })).toBeUndefined();
  const used = ['2026-01-01T00:00:00Z', null, '2026-01-02T00:00:00Z'];
  expect(seen({ tokens: used.map((last_used_at) => token({ last_used_at })) })).toBe(used[2]);
});

test('sandboxes are called by their names', () => {
  const all = [{ sandbox_id: 'sb_1', label: 'webshop' }] as SandboxInfo[];
  expect(labels(['sb_1', 'sb_2'], all)).toEqual(['webshop', 'sb_2']);
  expect(labels(null, all)).toBeUndefined();
});

test('what was asked and allowed is counted', () => {
  expect(asked([{}, { approval_id: 'a' }, { approval_id: 'b', approved_by: 'ana' }])).toEqual({
    asked: 2,
    approved: 1,
  });
});
