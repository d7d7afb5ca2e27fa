import { describe, expect, test } from 'vitest';
import { checkOf, receiverOf, stepOf } from './explainZh';
import type { Event } from './story';
import { told } from './storyZh';

const common = {
  at: '2026-11-27T10:00:00Z',
  last_at: '2026-11-27T10:00:51Z',
  count: 1,
  others: 0,
  text: 'x',
};
const english = /[A-Za-z]+ [a-z]+ [a-z]+/;

const silent: Event = {
  ...common,
  event: 'disconnected',
  cause: { kind: 'keep_alive', keep_alive_secs: 60, silent_millis: 91_250, late_millis: 1250 },
  connected_secs: 10_800,
  session_ended: true,
};
const EVENTS: Event[] = [
  {
    ...common,
    event: 'connected',
    peer: '10.0.0.9:5123',
    listener: 'mqtt',
    protocol_version: '5.0',
    session_present: false,
    keep_alive_secs: 60,
    session_expiry_secs: 3600,
  },
  { ...common, event: 'refused', peer: 'p', reason_code: 0x8a, reason: 'the client is banned' },
  silent,
  {
    ...common,
    event: 'disconnected',
    cause: { kind: 'by_client', with_will: true },
    connected_secs: 5,
    session_ended: false,
  },
  { ...common, event: 'disconnected', cause: { kind: 'lost' }, connected_secs: 5, session_ended: false },
  {
    ...common,
    event: 'disconnected',
    cause: { kind: 'taken_over', by: '10.0.0.9:1' },
    connected_secs: 5,
    session_ended: false,
  },
  {
    ...common,
    event: 'disconnected',
    cause: { kind: 'by_broker', reason_code: 0x98, reason: 'disconnected by an operator of the broker' },
    connected_secs: 5,
    session_ended: false,
  },
  { ...common, event: 'session_ended', cause: { kind: 'expired', session_expiry_secs: 60 } },
  { ...common, event: 'session_ended', cause: { kind: 'clean_start' } },
  { ...common, event: 'session_ended', cause: { kind: 'by_operator' } },
  { ...common, event: 'subscribed', filter: 'a/#', qos: 1, in_part: true },
  {
    ...common,
    event: 'subscription_refused',
    filter: 'a',
    reason_code: 0x87,
    cause: { kind: 'rule', rule: 'deny all sub a (acl.rules[0])' },
  },
  { ...common, event: 'unsubscribed', filter: 'a' },
  { ...common, event: 'subscription_revoked', filter: 'a' },
  { ...common, event: 'publish_refused', topic: 'a', cause: { kind: 'limit', limit: 'limits.max_payload' } },
  { ...common, event: 'dropped', count: 412, reason: 'queue_full' },
  { ...common, event: 'slowed', limit: 'limits.client.messages' },
  { ...common, event: 'will_published', topic: 'a' },
  { ...common, event: 'will_dropped', topic: 'a', reason: 'its client is no longer admitted' },
];

describe('the story of a client in Chinese', () => {
  test.each(EVENTS.map((event) => [event.event, event] as const))('%s has no English', (_, event) => {
    const words = told(event);
    expect(words).not.toBeNull();
    expect(`${words?.head}：${words?.rest.replace(/deny .*\)/, '')}`).not.toMatch(english);
    expect(words?.head).toMatch(/[\u4e00-\u9fff]/);
  });
  test('has its figures', () => {
    expect(EVENTS.map((event) => told(event)?.head)).toContain('51\u202f秒内丢弃 412 条消息');
    expect(told(silent)?.rest).toBe(
      '保活超时：1\u202f分 31\u202f秒没有收到任何报文（保活 60 秒，最多 1\u202f分 30\u202f秒）；会话随连接结束',
    );
  });
  test('a reason that is not known keeps the words of the broker, behind the name of its code', () =>
    expect(
      told({ ...common, event: 'refused', peer: 'p', reason_code: 0x87, reason: 'a new reason' })?.rest,
    ).toBe('未授权（0x87）：a new reason'));
  test('a drop that is not known is left to the broker', () =>
    expect(told({ ...common, event: 'dropped', reason: 'new_reason' })).toBeNull());
});

describe('what would happen to a packet, in Chinese', () => {
  const step = (check: string, text: string) => ({ check, outcome: 'passes', reason_code: null, text });
  test.each([
    ['access', 'denied: deny all pub locked/# (acl.rules[0])', '拒绝：deny all pub locked/# (acl.rules[0])'],
    ['access', 'allowed by acl.default: no rule matches', '没有匹配的规则，acl.default 允许'],
    ['name', 'the name is valid', '名称有效'],
    ['limit', 'limits.max_payload is 1 MiB, and this has 0 B', 'limits.max_payload 为 1 MiB，此处为 0 B'],
    ['sinks', 'no sink refuses it', '没有数据输出拒绝'],
  ])('%s: %s', (check, text, words) => expect(stepOf(step(check, text))).toBe(words));
  test('a step that is not known stays as it is', () => {
    expect(stepOf(step('new', 'something new'))).toBeNull();
    expect(checkOf(step('new', ''))).toBe('new');
  });
  test('a receiver that is away has its queue told', () => {
    const queue = {
      connected: false,
      congested: false,
      queued: { messages: 3, bytes: 0 },
      limit: { messages: 20, bytes: 0 },
      inflight: 0,
      free_window: 0,
    };
    const receiver = {
      client_id: 'a',
      filters: [],
      qos: 1,
      outcome: 'queued',
      drop_reason: null,
      text: '',
      queue,
    };
    expect(receiverOf(receiver)).toBe('进入队列，直到客户端恢复连接：3 / 20 条消息等待');
  });
});
