import { describe, expect, test } from 'vitest';
import { drawn, inSight } from './sight';

describe('rows in sight', () => {
  test('of a list that begins in the window are its first ones', () =>
    expect(inSight(-120, 900, 30)).toEqual({ from: 0, to: 40 }));
  test('of a list that was scrolled are those around the window', () =>
    expect(inSight(3000, 900, 30)).toEqual({ from: 90, to: 140 }));
  test('of a list below the window are none', () =>
    expect(inSight(-9000, 900, 30)).toEqual({ from: 0, to: 0 }));
  test('stay the same while it is scrolled by a few pixels', () =>
    expect(inSight(3003, 897, 30)).toEqual(inSight(3021, 879, 30)));
  test('are never more than the window has room for, whatever the length of the list', () => {
    const { from, to } = inSight(1_000_000, 2160, 30);
    expect(to - from).toBeLessThanOrEqual(2160 / 30 + 40);
  });
});

describe('rows that are drawn', () => {
  test('end with the list', () => expect(drawn(3, { from: 0, to: 40 }, -1)).toEqual([0, 1, 2]));
  test('have the focused one above, among and below those in sight', () => {
    expect(drawn(100, { from: 50, to: 53 }, 7)).toEqual([7, 50, 51, 52]);
    expect(drawn(100, { from: 50, to: 53 }, 51)).toEqual([50, 51, 52]);
    expect(drawn(100, { from: 50, to: 53 }, 99)).toEqual([50, 51, 52, 99]);
  });
  test('have no focused one that has gone', () => {
    expect(drawn(10, { from: 0, to: 2 }, 10)).toEqual([0, 1]);
    expect(drawn(10, { from: 0, to: 2 }, -1)).toEqual([0, 1]);
  });
});
