// Which tabs of a browser have their stream. With HTTP/1.1 a browser opens six connections to a host for all of its
// tabs: with a stream in each, the seventh tab would get no answer at all. No clock and no channel here.

/** A tab that is on the screen. */
export interface Tab {
  id: string;
  /** When the reader used it last. */
  usedAtMs: number;
}

/** So many tabs have their streams all the time; one more connection goes round, two are left for requests. */
export const STEADY_MOST = 3;
/** How long a tab has the connection that goes round. Figures come every second. */
export const TURN_MS = 1200;

/** Tabs that share the one connection, in an order that does not change while nobody uses another tab. */
function sharing(tabs: readonly Tab[]): Tab[] {
  return [...tabs]
    .sort((one, other) => other.usedAtMs - one.usedAtMs || (one.id < other.id ? -1 : 1))
    .slice(STEADY_MOST);
}

/** How many tabs share the connection with this one; 1 or less is a connection of its own. */
export function sharedBy(own: string, tabs: readonly Tab[]): number {
  const group = sharing(tabs);
  return group.some((tab) => tab.id === own) ? group.length : 1;
}

/** Whether a tab may have its stream now. All tabs of a browser have the same clock, so they need not ask. */
export function hasTurn(own: string, tabs: readonly Tab[], nowMs: number): boolean {
  const group = sharing(tabs);
  const at = group.findIndex((tab) => tab.id === own);
  return at < 0 || Math.floor(nowMs / TURN_MS) % group.length === at;
}

/** Milliseconds until the next turn begins. */
export function untilNextTurn(nowMs: number): number {
  return TURN_MS - (nowMs % TURN_MS);
}
