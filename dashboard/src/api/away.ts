// Which clients have no connection: lists of drops and answers about them name clients only.
import { api } from './client';

/** Those of the clients that are away: they have a session and no connection. Nothing is said of those that are not known. */
export async function awayOf(ids: readonly string[], signal?: AbortSignal): Promise<Set<string>> {
  const away = new Set<string>();
  await Promise.all(
    ids.map(async (id) => {
      try {
        const found = await api.get('/clients/{id}', { path: { id }, ...(signal ? { signal } : {}) });
        if (!found.connected) away.add(id);
      } catch {
        // Nothing is said about it.
      }
    }),
  );
  return away;
}
