import { describe, expect, test } from 'vitest';
import { since, spanOf } from './audit';

describe('the time of the audit log', () => {
  const now = Date.parse('2026-11-27T07:00:42.500Z');
  test('is before now, in whole minutes', () => {
    expect(since('1h', now)).toBe('2026-11-27T06:00:00Z');
    expect(since('7d', now)).toBe('2026-11-20T07:00:00Z');
  });
  test('is open without a span', () => expect(since(null, now)).toBe(''));
  test('of an address that names no span is open', () => {
    expect(spanOf('24h')).toBe('24h');
    expect(spanOf('constructor')).toBeNull();
    expect(spanOf('')).toBeNull();
  });
});
