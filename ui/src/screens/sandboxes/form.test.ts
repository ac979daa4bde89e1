import { expect, test } from 'vitest';
import type { SandboxInfo } from '../../api/schema';
import { EMPTY, files, fromInfo, toGuard, toSecrets } from './form';

test('how files are guarded is one word, whatever it was said by', () => {
  expect(files({ files: 'read', review: 'none' })).toBe('read');
  expect(files({ files: 'effects', review: null })).toBe('copy');
  expect(files({ files: 'write', review: 'effects' })).toBe('copy');
  expect(files({ files: 'write', review: 'before' })).toBe('write');
  expect(files({ files: 'effects', review: 'none' })).toBe('unasked');
  expect(files({ files: 'write', review: null })).toBe('server');
});

test('what was not touched is kept as it was', () => {
  for (const choice of ['read', 'copy', 'write', 'unasked', 'server'] as const) {
    const guard = toGuard({ ...EMPTY, files: choice, memory: '512', read: ' /a \n\n~/b\n', agents: ['x'] });
    const form = fromInfo({ ...guard, label: 'n', path: '/p' } as unknown as SandboxInfo);
    expect(toGuard(form)).toEqual(guard);
    expect(form.files).toBe(choice);
    expect(guard.read).toEqual(['/a', '~/b']);
  }
});

test('an empty field is the server’s own', () => {
  const { limits, agents, rules } = toGuard(EMPTY);
  expect(new Set(Object.values(limits))).toEqual(new Set([null]));
  expect([agents, rules]).toEqual([null, null]);
});

test('a variable that was taken out is taken away, and a secret without a new value stays', () => {
  const before = { set: { A: '1', B: '2' }, secrets: ['K', 'L', 'M'] } as unknown as SandboxInfo;
  const form = {
    ...EMPTY,
    set: [{ name: ' A ', value: '3', kept: false }],
    secrets: [
      { name: 'K', value: '', kept: true },
      { name: 'L', value: 'new', kept: true },
      { name: 'N', value: '', kept: false },
    ],
  };
  expect(toGuard(form, before).set).toEqual({ A: '3', B: null });
  expect(toSecrets(form, before)).toEqual({ L: 'new', M: null, N: '' });
});
