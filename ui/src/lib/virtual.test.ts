import { describe, expect, it } from 'vitest';
import { Heights, Scale } from './virtual';

describe('heights', () => {
  it('are equal as long as nothing else was measured', () => {
    const heights = new Heights(20);
    expect(heights.top(100_000)).toBe(2_000_000);
    expect(heights.at(45, 10)).toBe(2);
    expect(heights.at(1e9, 10)).toBe(9);
    expect(heights.at(0, 0)).toBe(0);
  });

  it('count what was measured for everything below', () => {
    const heights = new Heights(20);
    expect(heights.measured(3, 60)).toBe(true);
    expect(heights.measured(3, 60)).toBe(false);
    expect(heights.measured(1, 30)).toBe(true);
    expect([heights.top(1), heights.top(2), heights.top(3), heights.top(4)]).toEqual([20, 50, 70, 130]);
    expect(heights.at(129, 10)).toBe(3);
    expect(heights.at(130, 10)).toBe(4);
    heights.measured(3, 20);
    expect(heights.top(4)).toBe(90);
  });
});

describe('what is too long for a browser', () => {
  it('is scrolled proportionally, to both ends', () => {
    const scale = new Scale(40_000_000, 800, 8_000_000);
    expect(scale.scaled).toBe(true);
    expect(scale.shown(0)).toBe(0);
    expect(scale.shown(8_000_000 - 800)).toBeCloseTo(40_000_000 - 800);
    expect(scale.shown(scale.scrolled(30_000_000))).toBeCloseTo(30_000_000);
  });

  it('and the rest is not', () => {
    const scale = new Scale(5000, 800);
    expect(scale.scaled).toBe(false);
    expect(scale.shown(123)).toBe(123);
    expect(new Scale(100, 800).shown(0)).toBe(0);
  });
});
