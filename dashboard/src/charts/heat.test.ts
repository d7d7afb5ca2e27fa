import { describe, expect, test } from 'vitest';
import { stepped } from './cursor';
import { type Slice, bucketAt, cells, columnMs, fullest, levelOf, rowsOf, together, topShare } from './heat';

const slice = (atMs: number, ...buckets: [number, number, number][]): Slice => ({ atMs, buckets });

describe('columns of a heat map', () => {
  test('are whole steps, and not more than there is room for', () => {
    expect(columnMs(60_000, 120)).toBe(1000);
    expect(columnMs(350_000, 120)).toBe(5000);
    expect(columnMs(3_600_000, 120)).toBe(30_000);
    expect(columnMs(30 * 86_400_000, 120)).toBe(21_600_000);
  });
  test('put the values of their seconds together', () => {
    const found = cells(
      [slice(1000, [1, 2, 3]), slice(2000, [1, 2, 1], [10, 20, 4]), slice(3000, [1, 2, 5])],
      2000,
    );
    expect(found).toEqual([
      { fromMs: 0, toMs: 2000, low: 1, high: 2, count: 4, share: 0.5 },
      { fromMs: 0, toMs: 2000, low: 10, high: 20, count: 4, share: 0.5 },
      { fromMs: 2000, toMs: 4000, low: 1, high: 2, count: 5, share: 1 },
    ]);
  });
  test('leave out what has no value', () => expect(cells([slice(1000, [1, 2, 0])], 1000)).toEqual([]));
  test('a bucket that begins at 0 has a place on a logarithmic axis', () =>
    expect(rowsOf(cells([slice(1000, [0, 0.016, 9])], 1000))[0]).toBeCloseTo(0.01));
  test('shares of a column are those of this column', () => {
    const found = cells([slice(1000, [1, 2, 1]), slice(2000, [1, 2, 1000])], 1000);
    expect(found.map((cell) => cell.share)).toEqual([1, 1]);
  });
});

describe('levels of a heat map', () => {
  test('the top is a step above the largest share', () => {
    expect(topShare(cells([slice(1000, [1, 2, 21], [2, 3, 79])], 1000))).toBe(1);
    expect(
      topShare(
        cells(
          [slice(1000, ...Array.from({ length: 10 }, (_, n): [number, number, number] => [n + 1, n + 2, 1]))],
          1000,
        ),
      ),
    ).toBeCloseTo(0.1);
    expect(topShare([])).toBe(0.1);
  });
  test.each([
    [1, 7],
    [0.41, 7],
    [0.39, 6],
    [0.01, 2],
    [0.000001, 1],
  ])('a share of %s is level %s of 7', (share, level) => expect(levelOf(share, 1)).toBe(level));
});

describe('what a heat map says in words', () => {
  const buckets = together([slice(1000, [1, 2, 98]), slice(2000, [10, 20, 1], [1, 2, 1])]);
  test('the fullest bucket', () => expect(fullest(buckets)).toEqual([1, 2, 99]));
  test('the bucket of a percentile', () => {
    expect(bucketAt(buckets, 0.99)).toEqual([1, 2, 99]);
    expect(bucketAt(buckets, 1)).toEqual([10, 20, 1]);
    expect(bucketAt([], 0.5)).toBeNull();
  });
});

describe('the cursor of a chart', () => {
  test('moves with the arrows and stays inside', () => {
    expect(stepped('ArrowLeft', null, 10)).toBe(8);
    expect(stepped('ArrowLeft', 0, 10)).toBe(0);
    expect(stepped('ArrowRight', 9, 10)).toBe(9);
    expect(stepped('Home', 5, 10)).toBe(0);
  });
  test('leaves with Escape, and other keys mean nothing', () => {
    expect(stepped('Escape', 3, 10)).toBeNull();
    expect(stepped('Escape', null, 10)).toBeUndefined();
    expect(stepped('a', 3, 10)).toBeUndefined();
    expect(stepped('ArrowLeft', null, 0)).toBeUndefined();
  });
});
