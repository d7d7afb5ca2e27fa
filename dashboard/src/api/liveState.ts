// What the page says about its live connection, and when it tries again. No clock and no socket here.
import type { Problem } from './problem';
import { TURN_MS } from './turns';

/** The state of the one live connection of the page. */
export type LiveState =
  | { kind: 'off' }
  | { kind: 'connecting' }
  | { kind: 'live' }
  | { kind: 'stale'; sinceMs: number }
  // Many tabs are open: this one connects for a moment when it is its turn.
  | { kind: 'shared'; everyMs: number }
  | { kind: 'cut'; sinceMs: number | null; problem: Problem; retryAtMs: number | null }
  | { kind: 'ended'; reason: string };

/** Without an event for so long, values are old. Figures come every second. */
const STALE_MS = 4000;
/** A connection that was silent for so long does not come back. */
const DEAD_MS = 15_000;

/**
 * What silence means for a stream that `shared` tabs have one after another: the turns of the others are no silence.
 */
export function silence(quietMs: number, shared: number): 'none' | 'stale' | 'dead' {
  const own = quietMs - (shared > 1 ? shared * TURN_MS : 0);
  if (own > DEAD_MS) return 'dead';
  return own > STALE_MS ? 'stale' : 'none';
}

/** Milliseconds before attempt number `attempt` (the first is 1) after a failure; null: another one is of no use. */
export function retryDelayMs(attempt: number, problem: Problem, brokerAsksMs: number | null): number | null {
  const asked = problem.retryAfterSeconds;
  if (asked !== null) return asked * 1000;
  // A wrong request and a missing right stay what they are.
  if (problem.status === 400 || problem.status === 401 || problem.status === 403 || problem.status === 404)
    return null;
  const first = brokerAsksMs ?? 1000;
  return Math.min(first * 2 ** Math.min(attempt - 1, 4), 15_000);
}

/** Reasons with which the broker ends a stream, and whether the page connects again. */
export function endsForGood(reason: string): boolean {
  return reason === 'login_ended' || reason === 'scope_lost';
}
