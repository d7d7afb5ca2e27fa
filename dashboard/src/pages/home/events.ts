// What happened last at the broker, of all that the page may read: its start, alarms, and what people changed.
import type { Schemas } from '../../api/client';

export interface BrokerEvent {
  atMs: number;
  kind: 'started' | 'raised' | 'cleared' | 'change' | 'refused';
  /** The alarm, or who changed something. */
  name: string;
  /** The action and what it was done to; for an alarm the listener, sink or file that it is about. */
  what: string;
  to: string;
}

/** Actions that change nothing: to sign in and out, and to look. */
const LOOKS = /^(?:login|logout)\b|\.(?:watched|read|traced)$/;

interface Known {
  startedAt: string;
  raised?: readonly Pick<Schemas['Alarm'], 'name' | 'of' | 'raised_at'>[];
  cleared?: readonly Pick<Schemas['PastAlarm'], 'name' | 'of' | 'raised_at' | 'cleared_at'>[];
  audit?: readonly Pick<Schemas['AuditEntry'], 'action' | 'at' | 'outcome' | 'target' | 'who'>[];
}

/** The newest first, at most so many. */
export function eventsOf({ startedAt, raised = [], cleared = [], audit = [] }: Known, most: number) {
  const alarm = (kind: 'raised' | 'cleared', at: string, one: { name: string; of?: string | null }) => ({
    atMs: Date.parse(at),
    kind,
    name: one.name,
    what: '',
    to: one.of ?? '',
  });
  const events: BrokerEvent[] = [
    { atMs: Date.parse(startedAt), kind: 'started', name: '', what: '', to: '' },
    ...raised.map((one) => alarm('raised', one.raised_at, one)),
    ...cleared.map((one) => alarm('raised', one.raised_at, one)),
    ...cleared.map((one) => alarm('cleared', one.cleared_at, one)),
    ...audit
      .filter((one) => !LOOKS.test(one.action) || one.outcome === 'refused')
      .map((one): BrokerEvent => ({
        atMs: Date.parse(one.at),
        kind: one.outcome === 'done' ? 'change' : 'refused',
        name: one.who,
        what: one.action,
        to: one.target,
      })),
  ];
  return events.sort((one, other) => other.atMs - one.atMs).slice(0, most);
}
