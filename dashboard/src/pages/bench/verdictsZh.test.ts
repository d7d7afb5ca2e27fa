import { describe, expect, test } from 'vitest';
import { verdictOf } from './verdictsZh';

describe('what is said about a run, in Chinese', () => {
  test.each([
    [
      "all of e2e.p50 3.9ms may be the generator's: its thread bench-0 sent messages up to 274ms late",
      'e2e.p50 3.9ms 中的全部可能来自负载发生器：其线程 bench-0 发送消息最多迟了 274ms',
    ],
    [
      "up to 331ms of connect.p99 340ms may be the generator's: its thread bench-3 opened connections up to 330ms late",
      'connect.p99 340ms 中最多 331ms 可能来自负载发生器：其线程 bench-3 建立连接最多迟了 330ms',
    ],
    ['withheld: 300 values are too few: it takes 1 000', '不显示：300 个值太少：需要 1 000 个'],
    [
      'e2e.p99 < 1us is missed: withheld: 300 values are too few: it takes 1 000',
      '没有达到 e2e.p99 < 1us：不显示：300 个值太少：需要 1 000 个',
    ],
    ['broker.rss < 4MiB is missed: 8 MiB', '没有达到 broker.rss < 4MiB：8 MiB'],
    [
      'B needs 0.81 ± 0.04 times the CPU of A per message; p99: no difference shown',
      '每条消息 B 的 CPU 是 A 的 0.81 ± 0.04 倍；延迟 p99：没有显示出差异',
    ],
    [
      'A broke promises that C kept (lost, connections.lost); CPU per message: not comparable',
      'A 违反了 C 遵守的保证（丢失的消息、断开的连接）；每条消息的 CPU：不可比较',
    ],
    ['B needs 2.10 ± 0.30 times the memory of A', 'B 的内存是 A 的 2.10 ± 0.30 倍'],
    ['B delivers 12 ± 0.05 times the messages of A', 'B 送达的消息是 A 的 12 ± 0.05 倍'],
    ['publish ack p99 of B is 1.30 ± 0.10 times that of A', 'B 的确认 p99 是 A 的 1.30 ± 0.10 倍'],
    ['p99.9 of B is 1.30 ± 0.10 times that of A', 'B 的延迟 p99.9 是 A 的 1.30 ± 0.10 倍'],
    ['connect p50: no difference shown', '连接 p50：没有显示出差异'],
  ])('%s', (text, words) => expect(verdictOf(text)).toBe(words));
  test('a sentence that is not known is left to the program', () => {
    for (const text of ['something new happened', 'p99: no difference shown; something new happened'])
      expect(verdictOf(text)).toBeNull();
  });
});
