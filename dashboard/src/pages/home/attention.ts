// What needs attention, ranked: alarms first, then clients with problems.
import type { Schemas } from '../../api/client';

/** A kind of client that needs attention. */
export type ProblemName = 'dropping' | 'slow' | 'queue' | 'limited' | 'near_limit';

export type Item =
  | { kind: 'alarm'; state: 'bad' | 'warn'; alarm: Schemas['Alarm'] }
  | { kind: 'clients'; state: 'bad' | 'warn' | 'info'; problem: ProblemName; clients: number };

/** Where the cure of an alarm is, one click away. */
export type Cure = 'certificates' | 'reload' | 'drops' | 'queues' | 'clients' | 'why' | 'none';

const RANK = { bad: 0, warn: 1, info: 2 } as const;
const STATES = { dropping: 'bad', slow: 'warn', queue: 'warn', limited: 'info', near_limit: 'info' } as const;
const NAMES: readonly ProblemName[] = ['dropping', 'slow', 'queue', 'limited', 'near_limit'];

export function ranked(alarms: readonly Schemas['Alarm'][], problems: readonly Schemas['Facet'][]): Item[] {
  const items: Item[] = alarms.map((alarm) => ({
    kind: 'alarm',
    state: alarm.severity === 'critical' ? 'bad' : 'warn',
    alarm,
  }));
  // The alarm about queues says the same as the facet, with its cure.
  const queues = alarms.some((alarm) => alarm.name === 'queues_nearly_full');
  for (const problem of NAMES) {
    const clients = problems.find((facet) => facet.value === problem)?.clients ?? 0;
    if (clients > 0 && !(problem === 'queue' && queues))
      items.push({ kind: 'clients', state: STATES[problem], problem, clients });
  }
  return items.sort((one, other) => RANK[one.state] - RANK[other.state]);
}

export function cureOf(alarm: string): Cure {
  switch (alarm) {
    case 'certificate_expires_soon':
    case 'certificate_expired':
      return 'certificates';
    case 'reload_failed':
      return 'reload';
    case 'drops_going_on':
      return 'drops';
    case 'queues_nearly_full':
      return 'queues';
    case 'connections_near_limit':
      return 'clients';
    case 'cpu_busy':
    case 'overload':
      return 'why';
    default:
      return 'none';
  }
}

/** A sentence of the broker, which begins in lower case, as a sentence of the page. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
