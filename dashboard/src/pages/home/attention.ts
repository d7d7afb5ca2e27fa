// What needs attention, ranked: alarms first, then clients with problems.
import type { Schemas } from '../../api/client';
import { STATE_OF_PROBLEM, worseFirst } from '../../ui/loss';
import type { Silence } from '../../ui/silence';

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
  /** Messages are dropped, and neither an alarm nor a client tells of it. */
  | { kind: 'drops'; state: 'bad' | 'warn' }
  /** Messages come in, and none goes out. */
  | { kind: 'silence'; state: 'warn' | 'info'; silence: Silence }
  /** Anybody may connect, and do everything. */
  | { kind: 'open'; state: 'info' };

/** What the page knows. */
export interface Known {
  alarms: readonly Schemas['Alarm'][];
  /** The state of drops now. */
  drops: 'ok' | 'warn' | 'bad';
  /** How many clients have which problem. */
  problems?: readonly Schemas['Facet'][];
  /** Clients with problems, as many as the page has asked for. */
  troubled?: readonly Troubled[];
  silence?: Silence | null;
  open?: boolean;
}

/** Where the cure of an alarm is, one click away. */
export type Cure = 'certificates' | 'reload' | 'drops' | 'refused' | 'queues' | 'clients' | 'why' | 'none';

const NAMES: readonly ProblemName[] = ['dropping', 'slow', 'queue', 'limited', 'near_limit'];

/** Publishers are refused, and for nothing but full queues of receivers. */
function isRefusedByQueues({ name, arguments: values }: Schemas['Alarm']): boolean {
  const reasons = (values as Record<string, unknown>)['reasons'];
  if (name !== 'refusals_going_on' || !Array.isArray(reasons) || reasons.length === 0) return false;
  return reasons.every((one: { reason?: unknown }) => one.reason === 'queues_full');
}

/**
 * What needs attention, a cause once: drops and queues have an alarm and clients, and a queue that is full is the
 * cause of drops.
 */
export function ranked(known: Known): Item[] {
  const { problems = [], troubled = [], silence = null, open = false } = known;
  // A client "lost a message within the last minute": red while messages are lost, amber when the broker wants it so.
  const dropping = known.drops === 'bad' ? 'bad' : 'warn';
  const number = (problem: ProblemName) => problems.find((facet) => facet.value === problem)?.clients ?? 0;
  // The receivers whose queues are full are the cause of both.
  const isOfFullQueues = (alarm: Schemas['Alarm']) => number('dropping') > 0 && isRefusedByQueues(alarm);
  const alarms = known.alarms.filter((alarm) => !isOfFullQueues(alarm));
  const who = (problem: ProblemName) => troubled.filter((one) => one.problems.includes(problem));
  const full = who('queue');
  const toldByDrops =
    number('dropping') > 0 &&
    full.length === number('queue') &&
    full.every((one) => one.problems.includes('dropping'));
  const told = new Map<string, ProblemName>();
  if (number('dropping') > 0) told.set('drops_going_on', 'dropping');
  if (number('queue') > 0) told.set('queues_nearly_full', toldByDrops ? 'dropping' : 'queue');
  /** The alarm that such clients stand for: of drops and of queues, that of drops. */
  const alarmOf = (problem: ProblemName) => {
    const own = alarms.filter((alarm) => told.get(alarm.name) === problem);
    return own.find((alarm) => alarm.name === 'drops_going_on') ?? own[0];
  };
  const items: Item[] = [];
  for (const alarm of alarms)
    if (alarm.name === 'drops_going_on' && !told.has(alarm.name))
      items.push({ kind: 'alarm', state: dropping, alarm });
    else if (!told.has(alarm.name))
      items.push({ kind: 'alarm', state: alarm.severity === 'critical' ? 'bad' : 'warn', alarm });
  const tellsDrops = told.has('drops_going_on') || alarms.some((alarm) => alarm.name === 'drops_going_on');
  if (known.drops !== 'ok' && !tellsDrops) items.push({ kind: 'drops', state: known.drops });
  const isStalled = silence?.why === 'stalled';
  if (silence) items.push({ kind: 'silence', state: isStalled ? 'warn' : 'info', silence });
  for (const problem of NAMES) {
    const clients = number(problem);
    if (clients === 0 || (problem === 'queue' && toldByDrops) || (problem === 'slow' && isStalled)) continue;
    const found = who(problem);
    items.push({
      kind: 'clients',
      state: problem === 'dropping' ? dropping : STATE_OF_PROBLEM[problem],
      problem,
      clients,
      one: clients === 1 && found.length === 1 ? (found[0] ?? null) : null,
      since: alarmOf(problem)?.raised_at ?? null,
    });
  }
  if (open) items.push({ kind: 'open', state: 'info' });
  return items.sort((one, other) => worseFirst(one.state, other.state));
}

export type Alarmed = Extract<Item, { kind: 'alarm' | 'clients' }>;

/** What the sentence of the page is about; an alarm by its item, and how many others need attention beside it. */
export type Headline =
  | { about: 'unknown' | 'drops' | 'dropped' | 'stalled' | 'nobody' | 'ok' }
  | { about: 'alarm'; item: Alarmed; others: number };

/** An item that an alarm stands behind: the alarm itself, or the clients that it is about. */
function isAlarmed(item: Item): item is Alarmed {
  return item.kind === 'alarm' || (item.kind === 'clients' && item.since !== null);
}

/**
 * The worst first, of the items that the list below shows; null while they are not known. `dropping` are drops of
 * these seconds, `drops` the state of the last minute.
 */
export function headlineOf(known: {
  items: readonly Item[] | null;
  drops: 'ok' | 'warn' | 'bad';
  dropping: number;
  clients: number;
}): Headline {
  const { items } = known;
  if (items === null) return { about: 'unknown' };
  const alarm = (item: Alarmed | undefined): Headline | null =>
    item === undefined
      ? null
      : {
          about: 'alarm',
          item,
          others: items.filter((other) => other !== item && other.state !== 'info').length,
        };
  const alarmed = items.filter(isAlarmed);
  const isCritical = (item: Alarmed) => item.kind === 'alarm' && item.alarm.severity === 'critical';
  const critical = alarm(alarmed.find(isCritical));
  if (critical) return critical;
  if (known.drops !== 'ok') return { about: known.dropping > 0 ? 'drops' : 'dropped' };
  if (items.some((item) => item.kind === 'silence' && item.silence.why === 'stalled'))
    return { about: 'stalled' };
  return alarm(alarmed[0]) ?? { about: known.clients === 0 ? 'nobody' : 'ok' };
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
