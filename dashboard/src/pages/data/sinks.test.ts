import { describe, expect, test } from 'vitest';
import {
  type Counts,
  type Sample,
  addsUp,
  countsOf,
  howIs,
  rateOf,
  rates,
  share,
  sinksOf,
  sizeOf,
} from './sinks';

const counts = (more: Partial<Counts> = {}): Counts => ({
  offered: 0,
  written: 0,
  dropped: 0,
  failures: 0,
  waiting: 0,
  waitingBytes: 0,
  ...more,
});
const key = (name: string, value: unknown) => ({
  key: name,
  value,
  default: null,
  origin: 'file',
  set_at: 'thrum.toml:1',
  pinned: true,
  restart: false,
  waits: false,
  expected: '',
  description: '',
  secret: false,
});
const sink = (of: Counts | null) => {
  const [found] = sinksOf(
    [key('sinks.a.queue_messages', 100), key('sinks.a.queue_bytes', '1KiB'), key('sinks.a.filter', '#')],
    of === null ? null : new Map([['a', of]]),
  );
  if (!found) throw new Error('no sink');
  return found;
};
const samples = (...found: Counts[]): Sample[] =>
  found.map((one, index) => ({ atMs: index * 2000, counts: new Map([['a', one]]) }));

test('counts are read from the metrics, also of a name with quotes', () => {
  const found = countsOf(
    [
      '# TYPE thrum_sink_messages_written_total counter',
      'thrum_sink_messages_refused_total 4',
      'thrum_sink_messages_written_total{sink="a \\"b\\""} 12',
      'thrum_sink_waiting_bytes{sink="a \\"b\\""} 39',
    ].join('\n'),
  );
  expect([...found]).toEqual([['a "b"', counts({ written: 12, waitingBytes: 39 })]]);
});

test('keys of the configuration are sinks by name', () => {
  const found = sink(counts({ written: 1 }));
  expect(found.name).toBe('a');
  expect(found.config.get('filter')?.value).toBe('#');
  expect(found.counts?.written).toBe(1);
});

describe('rates', () => {
  test('are between two samples', () =>
    expect(rateOf(samples(counts(), counts({ written: 10 })), 'a', 'written')).toBe(5));
  test('are not known after a restart of the broker', () =>
    expect(rates(samples(counts({ written: 10 }), counts({ written: 1 })), 'a', 'written')).toEqual([null]));
  test('are not known of one sample', () => expect(rateOf(samples(counts()), 'a', 'written')).toBeNull());
});

describe('how a sink is', () => {
  const stuck = [{ name: 'sink_not_delivering', of: 'a' }];
  test.each([
    ['stuck', counts(), stuck, []],
    ['failing', counts({ failures: 2 }), [], samples(counts({ failures: 1 }), counts({ failures: 2 }))],
    ['losing', counts({ dropped: 2 }), [], samples(counts(), counts({ dropped: 2 }))],
    ['filling', counts({ waiting: 80 }), [], []],
    ['delivers', counts({ written: 1 }), [], []],
    ['idle', counts(), [], []],
  ] as const)('%s', (how, of, alarms, taken) => expect(howIs(sink(of), alarms, taken)).toBe(how));
  test('the alarm of another sink says nothing', () =>
    expect(howIs(sink(counts()), [{ name: 'sink_not_delivering', of: 'b' }], [])).toBe('idle'));
  test('without metrics it is not known', () => expect(howIs(sink(null), [], [])).toBe('unknown'));
});

test('a queue is as full as its fuller limit', () =>
  expect(share(sink(counts({ waiting: 10, waitingBytes: 512 })))).toBe(0.5));
test.each([
  ['64MiB', 67108864],
  ['1.5KB', 1500],
  [7, 7],
  ['many', null],
])('the size %s', (text, bytes) => expect(sizeOf(text)).toBe(bytes));
test('the account adds up when nothing is lost between', () => {
  expect(addsUp(counts({ offered: 5, written: 3, waiting: 2 }))).toBe(true);
  expect(addsUp(counts({ offered: 5, written: 3 }))).toBe(false);
});
