import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Now } from './now.svelte';

beforeEach(() => vi.useFakeTimers({ now: 1_000_000 }));
afterEach(() => vi.useRealTimers());

/** The times at which the clock moved within ten seconds; values come every so often, from 130 ms on. */
function moves(valuesEveryMs: number | null): number[] {
  const now = new Now();
  const end = now.start();
  const found: number[] = [];
  let last = now.ms;
  for (let ms = 1; ms <= 10_000; ms += 1) {
    vi.advanceTimersByTime(1);
    if (valuesEveryMs !== null && ms % valuesEveryMs === 130) now.withValues();
    if (now.ms !== last) found.push(ms);
    last = now.ms;
  }
  end();
  return found;
}

describe('the clock of the page', () => {
  test('moves once a second when no values come', () =>
    expect(moves(null)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((second) => second * 1000)));
  test('moves with one of the values, and at no other time', () => {
    const found = moves(500);
    expect(found.length).toBeGreaterThanOrEqual(9);
    // The first one is before values are known to come.
    for (const ms of found.slice(1)) expect(ms % 500).toBe(130);
  });
  test('does not wait for values that are seldom', () => {
    const found = moves(5000);
    const gaps = found.map((ms, index) => ms - (found[index - 1] ?? 0));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(1250);
  });
  test('follows a clock that was set back', () => {
    const now = new Now();
    const end = now.start();
    vi.setSystemTime(500_000);
    vi.advanceTimersByTime(1500);
    expect(now.ms).toBeLessThan(600_000);
    end();
  });
});
