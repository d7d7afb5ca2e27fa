import { describe, expect, test } from 'vitest';
import { endsForGood, retryDelayMs, silence } from './liveState';
import { Problem, noAnswer } from './problem';
import { TURN_MS } from './turns';

const problem = (status: number, after: number | null = null) =>
  new Problem({ title: 't', status, detail: 'd', remedy: 'r', retry_after_secs: after });

describe('the live connection', () => {
  test('waits longer after each failure, up to 15 s', () =>
    expect([1, 2, 3, 4, 5, 9].map((attempt) => retryDelayMs(attempt, noAnswer(), 2000))).toEqual([
      2000, 4000, 8000, 15_000, 15_000, 15_000,
    ]));
  test('waits as long as the broker asks', () => expect(retryDelayMs(1, problem(503, 7), 2000)).toBe(7000));
  test.each([400, 401, 403])('does not repeat a request that is answered with %s', (status) =>
    expect(retryDelayMs(1, problem(status), null)).toBeNull(),
  );
  test('is stale after four seconds without an event', () => {
    expect([4000, 4001, 15_000, 15_001].map((quietMs) => silence(quietMs, 1))).toEqual([
      'none',
      'stale',
      'stale',
      'dead',
    ]);
  });
  test('is not stale while it is the turn of other tabs', () => {
    const round = 5 * TURN_MS;
    expect([round + 4000, round + 4001, round + 15_001].map((quietMs) => silence(quietMs, 5))).toEqual([
      'none',
      'stale',
      'dead',
    ]);
  });
  test('ends with the login, but not with the broker', () => {
    expect(endsForGood('login_ended')).toBe(true);
    expect(endsForGood('scope_lost')).toBe(true);
    expect(endsForGood('stopping')).toBe(false);
  });
});
