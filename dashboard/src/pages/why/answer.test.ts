import { describe, expect, test } from 'vitest';
import { judged, othersOf } from './answer';

const latency = (measured: number, causes: unknown[] = []) => ({
  messages: 900,
  measured_deliveries: measured,
  causes,
});
const none = { dropped: 0, causes: [] };
const all = { dropped: 900, causes: [{}] };

describe('the verdict', () => {
  test('is not green while messages are dropped', () => {
    expect(judged({ latency: latency(50), drops: all }, 'slow')).toEqual({ is: 'bad', say: 'fast.drops' });
    expect(judged({ latency: latency(0), drops: all }, 'slow')).toEqual({
      is: 'bad',
      say: 'unmeasured.drops',
    });
    expect(judged({ latency: latency(0), drops: { dropped: 3, causes: [] } }, 'drops').is).toBe('bad');
  });
  test('is not green when nothing was measured', () => {
    expect(judged({ latency: latency(0), drops: none }, 'slow')).toEqual({ is: 'off', say: 'unmeasured' });
    expect(judged({ latency: null, drops: none }, 'slow')).toEqual({ is: 'off', say: 'idle' });
  });
  test('does not say that nothing was dropped where that was not counted', () => {
    const drops = { ...none, state: 'not_measured' };
    expect(judged({ latency: latency(50), drops }, 'drops')).toEqual({ is: 'off', say: 'drops.unmeasured' });
  });
  test('is green for what was measured and is well', () => {
    expect(judged({ latency: latency(50), drops: none }, 'slow')).toEqual({ is: 'ok', say: 'fast' });
    expect(judged({ latency: latency(0), drops: none }, 'drops')).toEqual({ is: 'ok', say: 'no.drops' });
    expect(judged({ latency: latency(50, [{}]), drops: all }, 'slow').say).toBe('slow');
  });
});

test('what was not measured, and a busy machine, have no green tick', () => {
  const of = (name: string, sentence: string) => ({ name, sentence });
  const others = othersOf({
    not_causes: [
      of('cpu', "the busiest worker ran 1.8 %, the machine's CPUs were busy 99 %"),
      of('disk', "the busiest worker ran 1.8 %, the machine's CPUs were busy 9 %"),
      of('rate_limits', 'no client has used up a rate'),
    ],
    not_measured: [of('authorization', 'nothing was authorized')],
  });
  expect(others.map((one) => `${one.name} ${one.is}`)).toEqual([
    'cpu warn',
    'disk ok',
    'rate_limits ok',
    'authorization off',
  ]);
});
