import { expect, test } from 'vitest';
import { verdict } from './backups';

const NOW = Date.parse('2026-11-27T12:00:00Z');
const backup = (began_at: string, state = 'done') => ({
  name: 'a',
  state,
  began_at,
  bytes: 1,
  expected_bytes: null,
  failure: null,
});
const today = backup('2026-11-27T06:00:00Z');

test('one that is made is told before all', () =>
  expect(verdict([today], backup('2026-11-27T12:00:00Z', 'running'), null, NOW).say).toBe('running'));
test('one that failed is told before those that are kept', () =>
  expect(verdict([today], null, backup('2026-11-27T12:00:00Z', 'failed'), NOW)).toEqual({
    is: 'bad',
    say: 'failed',
  }));
test('without any there is a warning', () =>
  expect(verdict([], null, null, NOW)).toEqual({ is: 'warn', say: 'none' }));
test('the newest one counts', () =>
  expect(verdict([today, backup('2026-01-01T00:00:00Z')], null, null, NOW).say).toBe('fresh'));
test('one of eight days ago is old', () =>
  expect(verdict([backup('2026-11-19T06:00:00Z')], null, null, NOW)).toEqual({ is: 'warn', say: 'old' }));
