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
  ])('%s', (text, words) => expect(verdictOf(text)).toBe(words));
  test('a sentence that is not known is left to the program', () =>
    expect(verdictOf('something new happened')).toBeNull());
});
