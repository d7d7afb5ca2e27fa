import { describe, expect, test } from 'vitest';
import { clientsOf, dropsOf, withoutShare } from './evidence';

describe('evidence', () => {
  test('names clients', () =>
    expect(
      clientsOf({ clients: [{ client_id: 'a', messages: 5, oldest_secs: 3, round_trip_micros: null }] }),
    ).toEqual([{ clientId: 'a', messages: 5, oldestSeconds: 3, roundTripMicros: null }]));
  test('names who lost messages of which topic', () =>
    expect(dropsOf({ of: [{ client_id: 'a', topic: null, messages: 2 }] })).toEqual([
      { clientId: 'a', topic: null, messages: 2 },
    ]));
  test('a form that the page does not know is no evidence', () => {
    expect(clientsOf({ clients: 'many' })).toEqual([]);
    expect(dropsOf({ of: [1, null, {}] })).toEqual([]);
  });
  test('a sentence loses its share', () =>
    expect(withoutShare('71 % of the time: clients that wait: a')).toBe('Clients that wait: a'));
  test('a sentence without one stays', () =>
    expect(withoutShare('the disk is full')).toBe('The disk is full'));
});
