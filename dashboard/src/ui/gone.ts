// Clients that are gone: they have no session, and the broker remembers what happened to them.
import { type Schemas, api } from '../api/client';

export interface Gone {
  clientId: string;
  /** What a page says of it: the end of its connection if that is remembered. */
  how: 'disconnected' | 'refused' | 'ended' | 'seen';
  atMs: number;
}

const HOW: Readonly<Record<string, Gone['how']>> = {
  disconnected: 'disconnected',
  refused: 'refused',
  session_ended: 'ended',
};

/** How a client has gone, as its timeline tells; null without an event. */
export function goneOf(timeline: {
  client_id: string;
  events: readonly { event: string; last_at: string }[];
}): Gone | null {
  const found =
    timeline.events.findLast((one) => one.event === 'disconnected') ??
    timeline.events.findLast((one) => one.event in HOW) ??
    timeline.events.at(-1);
  if (!found) return null;
  return { clientId: timeline.client_id, how: HOW[found.event] ?? 'seen', atMs: Date.parse(found.last_at) };
}

/** Asks for the client that has exactly this identifier; null if the broker remembers nothing of it. */
export async function askGone(id: string, signal: AbortSignal): Promise<Gone | null> {
  if (id === '') return null;
  try {
    const timeline: Schemas['Timeline'] = await api.get('/clients/{id}/timeline', { path: { id }, signal });
    return goneOf(timeline);
  } catch {
    // Nobody has this identifier, or the page cannot know: the list says so.
    return null;
  }
}
