// What needs attention, ranked: alarms first, then clients with problems.
import type { Schemas } from '../../api/client';

/** A kind of client that needs attention. */
export type ProblemName = 'dropping' | 'slow' | 'queue' | 'limited' | 'near_limit';

/** A client with problems, as the list of clients has it. */
export interface Troubled {
  client_id: string;
  connected: boolean;
  problems: readonly string[];
}

export type Item =
  | { kind: 'alarm'; state: 'bad' | 'warn'; alarm: Schemas['Alarm'] }
  | {
      kind: 'clients';
      state: 'bad' | 'warn' | 'info';
      problem: ProblemName;
      clients: number;
      /** The client, if it is one and known. */
      one: Troubled | null;
      /** Since when an alarm tells of it. */
      since: string | null;
    }
  /** Anybody may connect, and do everything. */
  | { kind: 'open'; state: 'info' };

/** Where the cure of an alarm is, one click away. */
export type Cure = 'certificates' | 'reload' | 'drops' | 'refused' | 'queues' | 'clients' | 'why' | 'none';

const RANK = { bad: 0, warn: 1, info: 2 } as const;
const STATES = { dropping: 'bad', slow: 'warn', queue: 'warn', limited: 'info', near_limit: 'info' } as const;
const NAMES: readonly ProblemName[] = ['dropping', 'slow', 'queue', 'limited', 'near_limit'];

/**
 * What needs attention, a cause once: drops and queues have an alarm and clients, and a queue that is full is the
 * cause of drops. `troubled` are clients with problems, as many as the page has asked for.
 */
export function ranked(
  alarms: readonly Schemas['Alarm'][],
  problems: readonly Schemas['Facet'][],
  troubled: readonly Troubled[] = [],
  open = false,
): Item[] {
  const number = (problem: ProblemName) => problems.find((facet) => facet.value === problem)?.clients ?? 0;
  const who = (problem: ProblemName) => troubled.filter((one) => one.problems.includes(problem));
  const full = who('queue');
  const toldByDrops =
    number('dropping') > 0 &&
    full.length === number('queue') &&
    full.every((one) => one.problems.includes('dropping'));
  const told = new Map<string, ProblemName>();
  if (number('dropping') > 0) told.set('drops_going_on', 'dropping');
  if (number('queue') > 0) told.set('queues_nearly_full', 'queue');
  const items: Item[] = [];
  for (const alarm of alarms)
    if (!told.has(alarm.name))
      items.push({ kind: 'alarm', state: alarm.severity === 'critical' ? 'bad' : 'warn', alarm });
  for (const problem of NAMES) {
    const clients = number(problem);
    if (clients === 0 || (problem === 'queue' && toldByDrops)) continue;
    const found = who(problem);
    items.push({
      kind: 'clients',
      state: STATES[problem],
      problem,
      clients,
      one: clients === 1 && found.length === 1 ? (found[0] ?? null) : null,
      since: alarms.find((alarm) => told.get(alarm.name) === problem)?.raised_at ?? null,
    });
  }
  if (open) items.push({ kind: 'open', state: 'info' });
  return items.sort((one, other) => RANK[one.state] - RANK[other.state]);
}

/** Whether anybody who reaches the broker may connect and do everything, and others than this machine reach it. */
export function isOpen(
  anonymous: unknown,
  otherwise: string,
  listeners: readonly { transport: string; state: string; bind: readonly string[] }[],
): boolean {
  const local = (bind: string) => /^(?:127\.|localhost:|\[::1\])/.test(bind);
  return (
    anonymous === true &&
    otherwise === 'allowed' &&
    listeners.some(
      (one) => one.transport !== 'http' && one.state === 'open' && !one.bind.every((bind) => local(bind)),
    )
  );
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
    case 'refusals_going_on':
      return 'refused';
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
