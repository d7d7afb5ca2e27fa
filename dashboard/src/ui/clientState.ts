// The state of a client in one word, for lists and for its page.
import { STATE_OF_PROBLEM } from './loss';
import type { State } from './state';

/** The problem that matters most, else connected or away. */
export type ClientState = 'dropping' | 'slow' | 'queue' | 'limited' | 'near_limit' | 'connected' | 'away';

const ORDER = ['dropping', 'slow', 'queue', 'limited', 'near_limit'] as const;

export function clientState(client: { connected: boolean; problems: readonly string[] }): ClientState {
  return (
    ORDER.find((problem) => client.problems.includes(problem)) ?? (client.connected ? 'connected' : 'away')
  );
}

/** It has a problem, and no connection: its state alone does not tell. */
export function alsoAway(client: { connected: boolean; problems: readonly string[] }): boolean {
  return !client.connected && clientState(client) !== 'away';
}

export const CLIENT_LOOK: Readonly<Record<ClientState, State>> = {
  ...STATE_OF_PROBLEM,
  connected: 'ok',
  away: 'off',
};
