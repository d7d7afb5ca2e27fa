import { describe, expect, test } from 'vitest';
import { noteOf, notCauseOf, remedyOf, sentenceOf, unmeasuredOf } from './whyZh';

const english = /[a-z]+ [a-z]+ [a-z]+/;
/** Commands stay as they are typed. */
const withoutCommands = (text: string | null) => text?.replace(/`[^`]*`/g, '') ?? '';
const client = {
  client_id: 'hist-1',
  messages: 4000,
  oldest_secs: 12,
  inflight: 1,
  output_bytes: 2048,
  unsent_bytes: 0,
  round_trip_micros: 240_000,
  resent_share: 0,
  delay_ms: null,
};
const CAUSES = [
  'slow_readers',
  'full_windows',
  'network_loss',
  'disk',
  'routing',
  'mailboxes',
  'authorization',
  'rate_limits',
  'full_queues',
  'overload',
  'handshakes',
  'cpu',
];
const DROPS = [
  'queue_full_away',
  'queue_full',
  'queue_oldest',
  'queue_age',
  'offline',
  'slow_consumer',
  'too_large',
  'expired',
  'outside_mount',
  'not_allowed',
  'memory_short',
  'no_shared_member',
  'retained_refused',
  'publish_denied',
];

describe('why it is slow, in Chinese', () => {
  test.each([...CAUSES, ...DROPS])('%s has a sentence and a remedy, also without figures', (name) => {
    const cause = { name, evidence: {} };
    for (const text of [sentenceOf(cause), remedyOf(cause)]) {
      expect(text).toMatch(/[\u4e00-\u9fff]/);
      expect(withoutCommands(text)).not.toMatch(english);
    }
  });
  test('a client that is behind is told with its figures', () =>
    expect(sentenceOf({ name: 'full_windows', evidence: { waiting_clients: 1, clients: [client] } })).toBe(
      '1 个客户端的窗口已满：hist-1（窗口 1，4\u202f000 条消息等待，最早的已等待 12\u202f秒，往返 240\u202fms，待写出 2\u202fKiB）',
    ));
  test('what is not the cause has its figures', () => {
    expect(notCauseOf({ name: 'mailboxes', evidence: { workers: 1 } })).toBe(
      '只有 1 个工作线程，消息不需要转交',
    );
    expect(notCauseOf({ name: 'handshakes', evidence: { connections_opened_per_second: 2 } })).toBe(
      '每秒 2 个新连接，没有推迟',
    );
    expect(notCauseOf({ name: 'expired', evidence: {} })).toBe('没有消息');
  });
  test('drops name client and topic', () => {
    const of = [{ client_id: 'hist-1', topic: 'a/b', messages: 100 }];
    expect(sentenceOf({ name: 'expired', evidence: { messages: 100, of } })).toBe(
      '发送之前已过期：hist-1 100 条（a/b）',
    );
  });
  test('what was not measured has its reason', () => {
    expect(unmeasuredOf('routing', false)).toBe('没有测量：没有任何一次送达被计时');
    expect(unmeasuredOf('offline', true)).toBe('没有测量：工作线程没有应答');
  });
  test('what this page does not know is left to the broker', () => {
    const unknown = { name: 'new_cause', evidence: {} };
    expect([sentenceOf(unknown), remedyOf(unknown), noteOf(unknown), unmeasuredOf('new', false)]).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });
});
