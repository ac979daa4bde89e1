import { describe, expect, it } from 'vitest';
import { asked, isStatus, isTime, parse, put, valueOf, without } from './filter';

describe('a filter is taken apart', () => {
  it('into keys and words', () => {
    const terms = parse('agent:coder status:failed rm');
    expect(terms.map(({ key, value }) => [key, value])).toEqual([
      ['agent', 'coder'],
      ['status', 'failed'],
      [undefined, 'rm'],
    ]);
  });

  it('names the nearest key for one that does not exist', () => {
    expect(parse('statsu:failed')[0]).toMatchObject({ unknown: 'statsu', nearest: 'status' });
    expect(parse('colour:red')[0]).toMatchObject({ unknown: 'colour' });
    expect(parse('colour:red')[0]?.nearest).toBeUndefined();
  });

  it('leaves addresses and what is quoted alone', () => {
    expect(parse('curl https://x.test "a b:c"').map(({ value, unknown }) => [value, unknown])).toEqual([
      ['curl', undefined],
      ['https://x.test', undefined],
      ['a b:c', undefined],
    ]);
  });
});

describe('a filter is changed by clicks', () => {
  it('that set, replace and remove a key', () => {
    expect(put('rm', 'status', 'failed')).toBe('rm status:failed');
    expect(put('status:failed rm', 'status', 'blocked')).toBe('rm status:blocked');
    expect(put('status:failed rm', 'status', undefined)).toBe('rm');
    expect(put('', 'agent', 'a b')).toBe('agent:"a b"');
    expect(valueOf('agent:"a b"', 'agent')).toBe('a b');
  });

  it('that take one term away', () => {
    const text = 'rm agent:coder rm';
    expect(without(text, parse(text)[2]!)).toBe('rm agent:coder');
  });
});

describe('the server is asked', () => {
  it('what was typed', () => {
    expect(asked('agent:coder  status:failed since:24h npm ci')).toEqual({
      q: 'agent:coder status:failed since:24h npm ci',
    });
    expect(asked('  ')).toEqual({});
  });

  it('but for what it would refuse while one types', () => {
    expect(asked('statsu:failed rm "a b')).toEqual({ q: 'rm "a b"' });
    expect(asked('rm status:')).toEqual({ q: 'rm' });
  });
});

it('values are looked at before they are sent', () => {
  expect(['30m', '7d', '2026-11-15', '2026-11-15T10:00:00Z'].filter(isTime)).toHaveLength(4);
  expect(['soon', '7', '2026-13-45'].some(isTime)).toBe(false);
  expect(isStatus('timed_out') && isStatus('pending')).toBe(true);
  expect(isStatus('nonsense')).toBe(false);
});
