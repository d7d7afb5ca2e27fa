import { describe, expect, test } from 'vitest';
import { type Receivers, offeredIn, quietOf, silenceOf } from './silence';

const MINUTE = 60;

/** A flow of a second each: what came in, and what went out. */
function flow(...parts: [seconds: number, incoming: number | null, outgoing: number | null][]) {
  const seconds = parts.flatMap(([many, incoming, outgoing]) =>
    Array.from({ length: many }, () => ({ incoming, outgoing })),
  );
  return {
    at: seconds.map((_, index) => index * 1000),
    incoming: seconds.map((one) => one.incoming),
    outgoing: seconds.map((one) => one.outgoing),
    lost: seconds.map((): number => 0),
  };
}

const receivers = (some: Partial<Receivers>): Receivers => ({
  slow: 0,
  subscriptions: 5,
  waitingAway: 0,
  waitingAwayBefore: 0,
  offered: 0,
  offeredBefore: 0,
  ...some,
});
const quiet = quietOf(flow([5, 10, 10], [MINUTE, 10, 0]));

describe('nothing goes out', () => {
  test('since the last second with a delivery', () =>
    expect(quiet).toEqual({ seconds: MINUTE, messages: 600, lost: false, sinceMs: 4000 }));
  test('unless something goes out now and then', () =>
    expect(quietOf(flow([MINUTE, 10, 0], [1, 10, 1], [9, 10, 0]))).toBeNull());
  test('unless nothing comes in', () => {
    expect(quietOf(flow([20, 10, 10], [MINUTE, 0, 0]))).toBeNull();
    expect(quietOf(flow([20, 10, 0], [MINUTE, 0, 0]))).toBeNull();
  });
  test('unless too little is known', () => {
    expect(quietOf(flow([9, 10, 0]))).toBeNull();
    expect(quietOf(flow([20, 10, 0], [1, null, null], [9, 10, 0]))).toBeNull();
    expect(quietOf(flow())).toBeNull();
  });
  test('and not before a gap, of which nothing is known', () => {
    const { at, ...rest } = flow([5, 10, 10], [35, 10, 0]);
    const after = (gap: number) => at.map((ms, second) => (second >= gap ? ms + 60_000 : ms));
    expect(quietOf({ at: after(31), ...rest })).toBeNull();
    expect(quietOf({ at: after(10), ...rest })).toEqual({
      seconds: 30,
      messages: 300,
      lost: false,
      sinceMs: null,
    });
  });
});

describe('what it means', () => {
  const early = quietOf(flow([5, 10, 10], [15, 10, 0]));
  test('is a warning if connected clients do not take what waits for them', () => {
    expect(silenceOf(early, receivers({ slow: 2 }))).toMatchObject({ why: 'stalled', clients: 2 });
  });
  test('is nothing for a minute if receivers have left or changed their subscriptions', () =>
    expect(silenceOf(early, receivers({ subscriptions: 0 }))).toBeNull());
  test('is a note then', () => {
    expect(silenceOf(quiet, receivers({ subscriptions: 0 }))?.why).toBe('nobody');
    expect(silenceOf(quiet, receivers({}))?.why).toBe('unmatched');
  });
  test('is that messages are kept, if they wait for clients that are away', () => {
    expect(silenceOf(quiet, receivers({ waitingAway: 9, waitingAwayBefore: 4 }))?.why).toBe('away');
    expect(silenceOf(quiet, receivers({ waitingAway: 9, waitingAwayBefore: 9 }))?.why).toBe('unmatched');
    expect(silenceOf(quiet, receivers({ waitingAway: 9, waitingAwayBefore: null }))).toBeNull();
  });
  const parts = flow([5, 10, 10], [MINUTE, 10, 0]);
  /** One is dropped or refused in that second. */
  const losing = (at: number) =>
    quietOf({ ...parts, lost: parts.lost.map((none, second) => (second === at ? 1 : none)) });
  test('is no missing subscription while messages are dropped or refused', () => {
    expect(losing(30)?.lost).toBe(true);
    expect(silenceOf(losing(30), receivers({}))).toBeNull();
    // Clients that are away: their queues are full and do not grow.
    expect(silenceOf(losing(30), receivers({ waitingAway: 9, waitingAwayBefore: 9 }))).toBeNull();
    // A loss before the last delivery is another matter.
    expect(silenceOf(losing(2), receivers({}))?.why).toBe('unmatched');
    expect(silenceOf(losing(30), receivers({ waitingAway: 9, waitingAwayBefore: 4 }))?.why).toBe('away');
    expect(silenceOf(losing(30), receivers({ slow: 1 }))?.why).toBe('stalled');
  });
  test('is nothing while sinks take what comes in', () => {
    for (const subscriptions of [0, 5]) {
      const of = (offered: number | null, offeredBefore: number | null) =>
        silenceOf(quiet, receivers({ subscriptions, offered, offeredBefore }));
      expect(of(900, 300)).toBeNull();
      expect(of(900, null)).toBeNull();
      expect(of(null, null)).toBeNull();
      expect(of(900, 900)?.why).toBe(subscriptions === 0 ? 'nobody' : 'unmatched');
      expect(of(0, null)?.why).toBe(subscriptions === 0 ? 'nobody' : 'unmatched');
    }
  });
  test('what sinks were offered is in the metrics', () => {
    const metrics = [
      '# TYPE thrum_sink_messages_offered_total counter',
      'thrum_sink_messages_offered_total{sink="a"} 30',
      'thrum_sink_messages_offered_total{sink="b } 7"} 12',
      'thrum_sink_messages_written_total{sink="a"} 29',
    ].join('\n');
    expect(offeredIn(metrics)).toBe(42);
    expect(offeredIn('thrum_drops_total 3')).toBe(0);
  });
  test('is nothing while the clients are not known, and while messages go out', () => {
    expect(silenceOf(quiet, null)).toBeNull();
    expect(silenceOf(null, receivers({ slow: 2 }))).toBeNull();
  });
});
