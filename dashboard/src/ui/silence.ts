// Messages come in and none goes out: whether deliveries are held up, or nobody is there for them.
//
// Figures of the whole broker alone do not tell these apart: receivers may have left, or publishers may have changed
// their topics. So only what clients hold up is a warning: some client is connected, messages wait for it, and it
// takes none of them. Whatever else leaves nobody to deliver to is a note, which changes no state.

/** Seconds without a delivery before anything is asked or said. */
export const STALLED_SECONDS = 10;
/** Seconds before a note: a topic that has a message once in a while is no news. */
export const UNHEARD_SECONDS = 60;

/** Messages of each second; null where it is not known. */
export interface Flow {
  at: readonly number[];
  incoming: readonly (number | null)[];
  outgoing: readonly (number | null)[];
  /** Messages that were dropped, and publishes that were refused. */
  lost: readonly (number | null)[];
}

/** For how long nothing has gone out. */
export interface Quiet {
  seconds: number;
  /** Messages that came in meanwhile. */
  messages: number;
  /** Whether some were dropped or refused meanwhile: these came to nobody for a reason of their own. */
  lost: boolean;
  /** The last second with a delivery; null if none is known. */
  sinceMs: number | null;
}

/** Between two seconds that follow each other; more is a gap, of which nothing is known. */
const GAP_MS = 2600;

/** Null while something goes out, while nothing comes in, and while too few seconds are known. */
export function quietOf({ at, incoming, outgoing, lost }: Flow): Quiet | null {
  const isGap = (later: number) => (at[later] ?? 0) - (at[later - 1] ?? 0) > GAP_MS;
  let first = at.length;
  let messages = 0;
  while (first > 0 && outgoing[first - 1] === 0 && (first === at.length || !isGap(first))) {
    first -= 1;
    messages += incoming[first] ?? 0;
  }
  const seconds = at.length - first;
  // They still come: a burst long ago is no flow.
  const comes = incoming.slice(-STALLED_SECONDS).some((value) => (value ?? 0) > 0);
  if (seconds < STALLED_SECONDS || !comes) return null;
  const delivered = first > 0 && (outgoing[first - 1] ?? 0) > 0 && !isGap(first);
  return {
    seconds,
    messages: Math.round(messages),
    lost: lost.slice(first).some((value) => (value ?? 0) > 0),
    sinceMs: delivered ? (at[first - 1] ?? null) : null,
  };
}

/** What the broker says of its clients while nothing goes out. */
export interface Receivers {
  /** Connected clients that do not take the messages that wait for them. */
  slow: number;
  /** Subscriptions of all sessions. */
  subscriptions: number;
  /** Messages that wait for clients that are away, now and when it was asked before. */
  waitingAway: number;
  waitingAwayBefore: number | null;
  /** Messages that sinks were offered, now and when it was asked before; null where it is not known. */
  offered: number | null;
  offeredBefore: number | null;
}

/** Messages that all sinks were offered, in the text of the metrics. */
export function offeredIn(metrics: string): number {
  const found = metrics.matchAll(/^thrum_sink_messages_offered_total\{[^\n]*\} (\d+)/gm);
  return [...found].reduce((sum, [, messages]) => sum + Number(messages), 0);
}

export interface Silence {
  /** Held up by clients; kept for clients that are away; without a subscription; with none that matches. */
  why: 'stalled' | 'away' | 'nobody' | 'unmatched';
  quiet: Quiet;
  clients: number;
}

/** Why nothing goes out; null if that is no news. */
export function silenceOf(quiet: Quiet | null, receivers: Receivers | null): Silence | null {
  if (quiet === null || receivers === null) return null;
  const { slow, subscriptions, waitingAway, waitingAwayBefore, offered, offeredBefore } = receivers;
  if (slow > 0) return { why: 'stalled', quiet, clients: slow };
  if (quiet.seconds < UNHEARD_SECONDS) return null;
  // What sinks take has a receiver; one answer does not tell old from new.
  if (offered === null || (offered > 0 && offered !== offeredBefore)) return null;
  if (subscriptions === 0) return { why: 'nobody', quiet, clients: 0 };
  // What waits for clients that are away did not come without a receiver, either.
  if (waitingAway > 0 && waitingAwayBefore === null) return null;
  if (waitingAway > (waitingAwayBefore ?? 0)) return { why: 'away', quiet, clients: 0 };
  // A subscription matches what is dropped: its client is away or its queue is full. What is refused is not looked up.
  return quiet.lost ? null : { why: 'unmatched', quiet, clients: 0 };
}
