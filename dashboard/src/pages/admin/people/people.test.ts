import { describe, expect, test } from 'vitest';
import { addAdmin, addKey, changeAdmin, doubtful, isLast, withoutCode } from './people';

const admin = (name: string, more: object = {}) => ({
  name,
  role: 'administrator',
  disabled: false,
  totp: false,
  sessions: 0,
  created_at: '',
  recovery_codes_left: 0,
  ...more,
});
const key = (id: string, more: object = {}) => ({
  id,
  label: id,
  scopes: ['metrics:read'],
  created_at: '',
  created_by: 'a',
  expired: false,
  expires_at: null,
  used_at: null,
  ...more,
});

describe('administrators', () => {
  test('those that are disabled need no one-time code', () =>
    expect(withoutCode([admin('a'), admin('b', { totp: true }), admin('c', { disabled: true })])).toEqual([
      'a',
    ]));
  test('the last that may do everything stays', () => {
    const all = [admin('a'), admin('b', { role: 'viewer' }), admin('c', { disabled: true })];
    expect(all.map((one) => isLast(one, all))).toEqual([true, false, false]);
    const two = [admin('a'), admin('d')];
    expect(two.map((one) => isLast(one, two))).toEqual([false, false]);
  });
});

describe('keys', () => {
  test('ask for a second look when they have expired, or may do everything without an end', () =>
    expect(
      doubtful([
        key('a', { expired: true, scopes: ['admin'], expires_at: '2020-01-01T00:00:00Z' }),
        key('b', { scopes: ['admin'], expires_at: null }),
        key('c', { expires_at: null }),
      ]),
    ).toEqual({ expired: 1, endless: 1 }));
});

describe('commands', () => {
  test('have no password', () => expect(addAdmin('bob', 'viewer')).toBe('thrum admin add bob --role viewer'));
  test('say what an administrator is then', () =>
    expect(changeAdmin('bob', 'operator', true, true)).toBe(
      'thrum admin change bob --role operator --disabled true --remove-totp',
    ));
  test('keys end, or never', () => {
    expect(addKey('my program', ['a', 'b'], 30)).toBe(
      "thrum keys add 'my program' --scope a --scope b --expires 30d",
    );
    expect(addKey('x', ['a'], 0)).toBe('thrum keys add x --scope a --expires never');
  });
});
