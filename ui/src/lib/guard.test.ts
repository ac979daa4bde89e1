// @vitest-environment node
import { expect, test } from 'vitest';
import { Guard, QUIET_MS } from './guard';

// Where there is no browser, an event of the pointer is this much of one.
class Pointer extends Event {
  constructor(readonly detail: number) {
    super('click');
  }
}
globalThis.MouseEvent = Pointer as unknown as typeof MouseEvent;

function set() {
  let now = 0;
  const guard = new Guard(() => now);
  return { guard, wait: (ms: number) => (now += ms) };
}

const key = new Event('keydown');

test('a key counts after a while without any other', () => {
  const { guard, wait } = set();
  wait(1000);
  guard.pressed(false);
  expect(guard.admits(key)).toBe(true);
  wait(QUIET_MS - 1);
  guard.pressed(false);
  expect(guard.admits(key)).toBe(false);
  wait(QUIET_MS);
  guard.pressed(false);
  expect(guard.admits(key)).toBe(true);
});

test('a key that is held down counts once', () => {
  const { guard, wait } = set();
  wait(1000);
  guard.pressed(false);
  wait(1000);
  guard.pressed(true);
  expect(guard.admits(key)).toBe(false);
});

test('after what is shown has changed, keys wait', () => {
  const { guard, wait } = set();
  wait(1000);
  guard.restart();
  wait(200);
  guard.pressed(false);
  expect(guard.admits(key)).toBe(false);
  wait(600);
  guard.pressed(false);
  expect(guard.admits(key)).toBe(true);
});

test('clicks wait only after what is under the pointer has moved', () => {
  const { guard, wait } = set();
  wait(1000);
  guard.pressed(false);
  expect(guard.admits(new Pointer(1))).toBe(true);
  guard.moved();
  wait(QUIET_MS - 1);
  expect(guard.admits(new Pointer(1))).toBe(false);
  wait(1);
  expect(guard.admits(new Pointer(1))).toBe(true);
});
