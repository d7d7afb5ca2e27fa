// What an answer of the broker lets the page say: nothing is well that was not measured.
import type { State } from '../../ui/state';

interface Answer {
  latency?: { messages: number; measured_deliveries: number; causes: readonly unknown[] } | null;
  drops?: { dropped: number; causes: readonly unknown[] } | null;
}

export interface Judged {
  is: State;
  say: 'slow' | 'fast' | 'fast.drops' | 'unmeasured' | 'unmeasured.drops' | 'idle' | 'drops' | 'no.drops';
}

/** The verdict about the times of messages, or about drops. */
export function judged(why: Answer, view: 'slow' | 'drops'): Judged {
  const dropped = why.drops?.dropped ?? 0;
  if (view === 'drops') return dropped > 0 ? { is: 'bad', say: 'drops' } : { is: 'ok', say: 'no.drops' };
  const { latency } = why;
  if (latency && latency.causes.length > 0) return { is: 'warn', say: 'slow' };
  if (latency && latency.measured_deliveries > 0)
    return dropped > 0 ? { is: 'bad', say: 'fast.drops' } : { is: 'ok', say: 'fast' };
  if (dropped > 0) return { is: 'bad', say: 'unmeasured.drops' };
  return { is: 'off', say: latency && latency.messages > 0 ? 'unmeasured' : 'idle' };
}

/** The state of what is said not to be the cause: only what was measured, and is well, is. */
export function stateOf(sentence: string): State {
  if (/not measured|no message was measured|not known/i.test(sentence)) return 'off';
  const busy = /CPUs were busy (\d+(?:\.\d+)?) %/.exec(sentence)?.[1];
  return busy !== undefined && Number(busy) >= 90 ? 'warn' : 'ok';
}
