import { describe, expect, test } from 'vitest';
import { SECONDS_KEPT, Series, withGaps, ratePerSecond } from './series';

describe('series', () => {
  test('goes on behind the history', () => {
    const series = new Series();
    series.push(3000, { a: 3 });
    series.load([1000, 2000], { a: [1, 2] });
    expect(series.at).toEqual([1000, 2000, 3000]);
    expect(series.column('a')).toEqual([1, 2, 3]);
  });
  test('takes a second once that the history has as well', () => {
    const series = new Series();
    series.push(2300, { a: 2 });
    series.push(3300, { a: 3 });
    series.load([1000, 2000], { a: [1, 2] });
    expect(series.at).toEqual([1000, 2000, 3300]);
    expect(series.column('a')).toEqual([1, 2, 3]);
  });
  test('takes a second once', () => {
    const series = new Series();
    series.push(1000, { a: 1 });
    expect(series.push(1250, { a: 2 })).toBe(false);
    expect(series.column('a')).toEqual([1]);
  });
  test('a figure that begins later was not known before', () => {
    const series = new Series();
    series.push(1000, { a: 1 });
    series.push(2000, { b: 2 });
    expect(series.column('a')).toEqual([1, null]);
    expect(series.column('b')).toEqual([null, 2]);
  });
  test('forgets what is older than 15 minutes', () => {
    const series = new Series();
    for (let second = 1; second <= SECONDS_KEPT + 10; second += 1) series.push(second * 1000, { a: second });
    expect(series.at).toHaveLength(SECONDS_KEPT);
    expect(series.column('a')[0]).toBe(11);
  });
  test('sums a rate', () => {
    const series = new Series();
    series.load([1000, 2000, 3000], { a: [1, null, 3] });
    expect(series.sum('a')).toBe(4);
  });
  test('sums the last seconds of a rate, of which only some may be known', () => {
    const series = new Series();
    series.load([1000, 30_000, 90_000, 91_000, 92_000], { drops: [500, 500, 10, null, 20] });
    expect(series.sum('drops', 60)).toBe(30);
    expect(series.sum('drops')).toBe(1030);
  });
  test('no line crosses a gap', () =>
    expect(withGaps([1000, 2000, 9000], [[1, 2, 3]], 2500)).toEqual({
      at: [1000, 2000, 3000, 9000],
      columns: [[1, 2, null, 3]],
    }));
});

test('two values of the same second count once in a sum', () => {
  const series = new Series();
  for (const at of [1000, 2000, 2600, 3200, 4000]) series.push(at, { drops: 450 });
  expect(series.sum('drops')).toBeCloseTo(450 * 4);
  const gap = new Series();
  gap.push(1000, { drops: 10 });
  gap.push(60_000, { drops: 10 });
  expect(gap.sum('drops')).toBe(20);
});

test('a rate that is read is that of the last seconds, not of one', () => {
  const series = new Series();
  [460, 460, 460, 460, 318].forEach((drops, second) => series.push(second * 1000, { drops }));
  expect(series.recent('drops', 5)).toBeCloseTo(431.6);
  expect(series.recent('drops', 1)).toBe(318);
  expect(series.recent('none', 5)).toBeNull();
});

test('a counter that grew while nobody looked is no rate of a moment', () => {
  const before = { atMs: 1000, count: 100 };
  expect(ratePerSecond(before, 49_000, 100 + 48 * 57)).toBe(57);
  expect(ratePerSecond(before, 2000, 5)).toBeNull();
  expect(ratePerSecond(before, 1000, 200)).toBeNull();
  expect(ratePerSecond(null, 1000, 200)).toBeNull();
});
