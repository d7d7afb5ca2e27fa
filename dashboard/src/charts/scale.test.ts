import { describe, expect, test } from 'vitest';
import { decades, rangeAround, rangeFromZero, rangeOfDecades, stepAbove, windowFor } from './scale';
import { sparkPath, thinned } from './spark';

describe('ranges', () => {
  test.each([
    [0, 1],
    [1, 1],
    [1.1, 2],
    [3, 5],
    [60, 100],
    [0.03, 0.05],
  ])('the step above %s is %s', (value, step) => expect(stepAbove(value)).toBeCloseTo(step));
  test('begin at 0 and grow in steps', () => {
    expect(rangeFromZero(113)).toEqual([0, 150]);
    expect(rangeFromZero(149)).toEqual([0, 150]);
    expect(rangeFromZero(null)).toEqual([0, 1]);
  });
  test('of latencies are whole decades, 0.1 to 10 ms at least', () => {
    expect(rangeOfDecades(0.3, 1.9)).toEqual([0.1, 10]);
    expect(rangeOfDecades(0.03, 240)).toEqual([0.01, 1000]);
    expect(decades(0.1, 10)).toHaveLength(3);
  });
  test('of values need not begin at 0', () => {
    expect(rangeAround(21.2, 22.9)[0]).toBeGreaterThan(20);
    expect(rangeAround(5, 5)).toEqual([4.5, 5.5]);
  });
  test('time moves in steps', () => {
    expect(windowFor([0, 30_000])).toBe(60_000);
    expect(windowFor([0, 61_000])).toBe(120_000);
    expect(windowFor([0, 3_600_000])).toBe(900_000);
  });
});

describe('sparklines', () => {
  test('zero all the time is a hairline', () =>
    expect(sparkPath([0, 0, 0])).toMatchObject({ zero: true, area: '' }));
  test('nothing known is nothing drawn', () => expect(sparkPath([null, null]).line).toBe(''));
  test('a gap is a gap', () => expect(sparkPath([1, null, 1]).line.match(/M/g)).toHaveLength(2));
  test('a peak is not lost', () => {
    const values = Array.from({ length: 900 }, (_, index) => (index === 451 ? 99 : 1));
    expect(Math.max(...thinned(values, 300).map((value) => value ?? 0))).toBe(99);
    expect(thinned(values, 300)).toHaveLength(300);
  });
});
