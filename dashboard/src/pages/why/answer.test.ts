import { describe, expect, test } from 'vitest';
import { judged, stateOf } from './answer';

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
  test('is green for what was measured and is well', () => {
    expect(judged({ latency: latency(50), drops: none }, 'slow')).toEqual({ is: 'ok', say: 'fast' });
    expect(judged({ latency: latency(0), drops: none }, 'drops')).toEqual({ is: 'ok', say: 'no.drops' });
    expect(judged({ latency: latency(50, [{}]), drops: all }, 'slow').say).toBe('slow');
  });
});

test('what was not measured, and a busy machine, have no green tick', () => {
  expect(stateOf('the decision takes a time that was not measured')).toBe('off');
  expect(stateOf('no message was measured')).toBe('off');
  expect(stateOf("the busiest worker ran 1.8 %, the machine's CPUs were busy 99 %")).toBe('warn');
  expect(stateOf("the busiest worker ran 1.8 %, the machine's CPUs were busy 9 %")).toBe('ok');
  expect(stateOf('no client has used up a rate')).toBe('ok');
});
