// The one rule of red and amber, for the health in the bar, for the sentence of Home and for its list.
//
// Red is what is lost now: a message that the broker had taken, and that somebody should have got, was dropped within
// the last minute because a queue, a client or the memory had no room for it. Amber is what may become a loss (a
// client that takes too slowly, a queue that fills), and what was dropped because somebody wants it so: the message
// had an expiry, a rule or a limit of the client refused it, or it had QoS 0 and its client was away. Blue is a note.
import type { State } from './state';

/** Drops that are losses, by their reasons in the broker; the other reasons are wanted. */
const LOSSES = [
  'queue_full',
  'queue_oldest',
  'queue_age',
  'slow_consumer',
  'memory_short',
  'no_shared_member',
  'retained_refused',
] as const;

/** What is now: the broker calls a client "dropping" as long, and its alarm of drops ends as late. */
export const LOSS_SECONDS = 60;

/** The state of drops; `rate` is what a figure of the broker was in the mean of the last minute. */
export function stateOfDrops(rate: (figure: string) => number | null): 'ok' | 'warn' | 'bad' {
  if (LOSSES.some((reason) => (rate(`drops_${reason}`) ?? 0) > 0)) return 'bad';
  return (rate('drops') ?? 0) > 0 ? 'warn' : 'ok';
}

/** Problems of clients, and how bad each of them is. That of clients that lose messages is the state of drops. */
export const STATE_OF_PROBLEM = {
  dropping: 'bad',
  slow: 'warn',
  queue: 'warn',
  limited: 'info',
  near_limit: 'info',
} as const satisfies Readonly<Record<string, State>>;

const NAMES = ['dropping', 'slow', 'queue', 'limited', 'near_limit'] as const;
const RANK = { bad: 0, warn: 1, info: 2, off: 3, ok: 4 } as const;

/** Sorts states, the worst first. */
export function worseFirst(one: State, other: State): number {
  return RANK[one] - RANK[other];
}

/** The worst state of clients with problems; "ok" if there are none. */
export function stateOfProblems(problems: readonly { value: string; clients: number }[]): State {
  const found = problems.filter((facet) => facet.clients > 0).map((facet) => facet.value);
  const states = NAMES.filter((name) => found.includes(name)).map((name) => STATE_OF_PROBLEM[name]);
  return states.sort(worseFirst)[0] ?? 'ok';
}
