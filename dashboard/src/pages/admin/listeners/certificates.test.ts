import { describe, expect, test } from 'vitest';
import { certificates, lasting, urgency, verdict } from './certificates';

const NOW = Date.parse('2026-11-27T12:00:00Z');
const certificate = (serial: string, days_left: number, not_before = '2026-01-01T00:00:00Z') => ({
  file: '/c.pem',
  subject: 'CN=a',
  issuer: 'CN=ca',
  names: ['a'],
  serial,
  not_before,
  not_after: '2027-01-01T00:00:00Z',
  days_left,
});
const listener = (name: string, state: string, ...found: ReturnType<typeof certificate>[]) => ({
  name,
  state,
  transport: 'tcp',
  addresses: [],
  bind: [],
  connections: 0,
  refused_over_limit: 0,
  limits: { max_connections: null, connect_rate: null, messages: null, bytes: null },
  tls:
    found.length === 0
      ? null
      : { from: null, session_tickets: true, min_version: '1.2', certificates: found },
});

describe('certificates', () => {
  test('a certificate of two listeners is listed once, the one that ends first above', () =>
    expect(
      certificates([
        listener('a', 'open', certificate('1', 40)),
        listener('b', 'open', certificate('1', 40), certificate('2', 3)),
      ]).map((one) => [one.certificate.serial, one.listeners]),
    ).toEqual([
      ['2', ['b']],
      ['1', ['a', 'b']],
    ]));

  test.each([
    [-1, 'bad', 'expired'],
    [0, 'bad', 'today'],
    [2, 'bad', 'left'],
    [13, 'warn', 'left'],
    [14, 'ok', 'left'],
  ])('%i days left is %s', (days, state, sentence) => {
    expect(urgency(certificate('1', days), NOW)).toBe(state);
    expect(lasting(certificate('1', days), NOW)).toBe(sentence);
  });

  test('one that is not valid yet is bad', () => {
    const early = certificate('1', 400, '2026-12-01T00:00:00Z');
    expect(urgency(early, NOW)).toBe('bad');
    expect(lasting(early, NOW)).toBe('early');
  });
});

describe('the verdict', () => {
  test('names an expired certificate before a stopped listener', () =>
    expect(
      verdict([listener('a', 'stopped'), listener('b', 'open', certificate('1', -3))], NOW),
    ).toMatchObject({ is: 'bad', say: 'expired', stopped: ['a'] }));
  test('names a stopped listener', () =>
    expect(verdict([listener('a', 'stopped'), listener('b', 'open')], NOW)).toMatchObject({
      is: 'warn',
      say: 'stopped',
    }));
  test('is well when all are open', () =>
    expect(verdict([listener('a', 'open', certificate('1', 90))], NOW)).toMatchObject({
      is: 'ok',
      say: 'open',
    }));
});
