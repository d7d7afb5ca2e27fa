import { describe, expect, test } from 'vitest';
import { summary } from './packets';
import { type Event, byDay, lookOf, told } from './story';

const common = { count: 1, others: 0 };
const connected: Event = {
  ...common,
  at: '2026-11-26T10:00:00Z',
  last_at: '2026-11-26T10:00:00Z',
  text: 'connected',
  event: 'connected',
  peer: 'p',
  listener: 'mqtt',
  protocol_version: '5.0',
  session_present: false,
  keep_alive_secs: 60,
  session_expiry_secs: 0,
};
const lost: Event = {
  ...common,
  at: '2026-11-27T10:00:00Z',
  last_at: '2026-11-27T10:00:00Z',
  text: 'x',
  event: 'disconnected',
  cause: { kind: 'keep_alive', keep_alive_secs: 60, silent_millis: 91_000, late_millis: 1000 },
  connected_secs: 5,
  session_ended: false,
};
const denied: Event = {
  ...common,
  at: '2026-11-27T11:00:00Z',
  last_at: '2026-11-27T11:00:00Z',
  text: 'x',
  event: 'publish_refused',
  topic: 'a',
  cause: { kind: 'rule', rule: 'deny' },
};

describe('the story of a client', () => {
  test('is told with the clause first', () =>
    expect(told('disconnected after 3 h: keep alive missed: nothing received')).toEqual({
      head: 'Disconnected after 3 h',
      rest: 'Keep alive missed: nothing received',
    }));
  test('writes numbers of messages as the page does', () =>
    expect(told('192352 messages dropped within 7 min: the queue is full').head).toBe(
      '192\u202f352 messages dropped within 7 min',
    ));
  test('a sentence without a cause is whole', () =>
    expect(told('taken over')).toEqual({ head: 'Taken over', rest: '' }));
  test('has the newest day first', () =>
    expect(byDay([connected, lost, denied], 'all').map((day) => day.events.length)).toEqual([2, 1]));
  test('shows problems alone', () =>
    expect(byDay([connected, lost, denied], 'problems').flatMap((day) => day.events)).toEqual([
      denied,
      lost,
    ]));
  test('shows access alone', () =>
    expect(byDay([connected, lost, denied], 'access').flatMap((day) => day.events)).toEqual([denied]));
  test('a client that says goodbye is no problem', () =>
    expect(lookOf({ ...lost, cause: { kind: 'by_client', with_will: false } }).state).toBeNull());
});

describe('packets', () => {
  const packet = { at: '', direction: 'from_client', packet: 'PUBLISH', packet_bytes: 9 };
  test('are told in one line', () =>
    expect(summary({ ...packet, topic: 'a/b', qos: 1, retain: true, packet_id: 7, payload: '<b>' })).toBe(
      'a/b · QoS 1 · retained · <b>',
    ));
  test('binary payloads are hexadecimal', () =>
    expect(summary({ ...packet, payload_base64: 'AP8=' })).toBe('00 ff'));
  test('a reason code is told in words', () => {
    const acknowledged = { ...packet, packet: 'PUBACK', packet_id: 7 };
    expect(summary({ ...acknowledged, reason_code: 0 })).toBe('');
    expect(summary({ ...acknowledged, reason_code: 0x97 })).toBe('0x97 Quota exceeded');
    expect(summary({ ...acknowledged, reason_code: 0xf1 })).toBe('0xf1');
    const several = { ...acknowledged, reason_codes: [0, 1, 0x87] };
    expect(summary({ ...several, packet: 'SUBACK' })).toBe('QoS 0, QoS 1, 0x87 Not authorized');
    expect(summary({ ...acknowledged, packet: 'UNSUBACK', reason_codes: [0, 0x11] })).toBe(
      '0x11 No subscription existed',
    );
  });
});
