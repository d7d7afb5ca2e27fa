// What an answer of the broker lets the page say: nothing is well that was not measured.
import type { State } from '../../ui/state';

interface Answer {
  latency?: { messages: number; measured_deliveries: number; causes: readonly unknown[] } | null;
  drops?: { state?: string; dropped: number; causes: readonly unknown[] } | null;
}

/** What is not the cause, or was not measured. */
interface Other {
  name: string;
  sentence: string;
  evidence?: object;
}

export interface Judged {
  is: State;
  say:
    | 'slow'
    | 'fast'
    | 'fast.drops'
    | 'unmeasured'
    | 'unmeasured.drops'
    | 'idle'
    | 'drops'
    | 'no.drops'
    | 'drops.unmeasured';
}

/** The verdict about the times of messages, or about drops. */
export function judged(why: Answer, view: 'slow' | 'drops'): Judged {
  const dropped = why.drops?.dropped ?? 0;
  if (view === 'drops') {
    if (dropped > 0) return { is: 'bad', say: 'drops' };
    return why.drops?.state === 'not_measured'
      ? { is: 'off', say: 'drops.unmeasured' }
      : { is: 'ok', say: 'no.drops' };
  }
  const { latency } = why;
  if (latency && latency.causes.length > 0) return { is: 'warn', say: 'slow' };
  if (latency && latency.measured_deliveries > 0)
    return dropped > 0 ? { is: 'bad', say: 'fast.drops' } : { is: 'ok', say: 'fast' };
  if (dropped > 0) return { is: 'bad', say: 'unmeasured.drops' };
  return { is: 'off', say: latency && latency.messages > 0 ? 'unmeasured' : 'idle' };
}

/** What is not the cause, and then what was not measured: only the former may be well. */
export function othersOf(part: {
  not_causes: readonly Other[];
  not_measured: readonly Other[];
}): (Other & { is: State; evidence: object })[] {
  return [
    ...part.not_causes.map((one) => ({ ...one, evidence: one.evidence ?? {}, is: stateOf(one.sentence) })),
    ...part.not_measured.map((one) => ({ ...one, evidence: one.evidence ?? {}, is: 'off' as const })),
  ];
}

/** What was measured and is not the cause is well, unless the machine is busy with something else. */
function stateOf(sentence: string): State {
  const busy = /CPUs were busy (\d+(?:\.\d+)?) %/.exec(sentence)?.[1];
  return busy !== undefined && Number(busy) >= 90 ? 'warn' : 'ok';
}
