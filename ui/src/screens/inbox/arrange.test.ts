import { describe, expect, it } from 'vitest';
import type { ApprovalView } from '../../api/schema';
import { arrange, matching } from './arrange';

const row = (approval_id: string, more: Partial<ApprovalView> = {}): ApprovalView =>
  ({ approval_id, command: approval_id, ...more }) as ApprovalView;
const ids = (rows: ApprovalView[]) => rows.map(({ approval_id }) => approval_id).join('');
const of = (names: string) => [...names].map((name) => row(name));

describe('arrange', () => {
  it('takes the order of the server when nothing is shown', () => {
    expect(ids(arrange(of('ab'), of('cab'), undefined).rows)).toBe('cab');
  });

  it('holds back what would come in above what is shown', () => {
    const { rows, held } = arrange(of('ab'), of('xayb'), 'a');
    expect(ids(rows)).toBe('ayb');
    expect(ids(held)).toBe('x');
  });

  it('keeps what is closed above what is shown, and the shown one itself', () => {
    expect(ids(arrange(of('abc'), of('c'), 'b').rows)).toBe('abc');
    expect(ids(arrange(of('abc'), of('b'), 'b').rows)).toBe('ab');
  });

  it('goes on below', () => {
    const { rows, held } = arrange(of('abc'), of('abcd'), 'b');
    expect(ids(rows)).toBe('abcd');
    expect(held).toEqual([]);
  });

  it('shows what is new of a row', () => {
    const changed = [row('a', { count: 3 })];
    expect(arrange(of('a'), changed, 'a').rows[0]!.count).toBe(3);
  });
});

it('finds every word, wherever it stands', () => {
  const rows = [row('1', { command: 'rm -rf build', requested_by: 'coder' }), row('2')];
  expect(ids(matching(rows, 'CODER rm'))).toBe('1');
  expect(ids(matching(rows, ' '))).toBe('12');
});
