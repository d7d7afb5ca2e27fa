// What words in the field of "find" mean.

/** Keys of the configuration with all words in their name or description; those with it in the name first. */
export function settingsLike<T extends { key: string; description: string }>(
  settings: readonly T[],
  words: string,
  most: number,
): T[] {
  const wanted = words
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (wanted.length === 0) return [];
  const inAll = (text: string) => wanted.every((word) => text.toLowerCase().includes(word));
  const named = settings.filter(({ key }) => inAll(key));
  const told = settings.filter((one) => !inAll(one.key) && inAll(`${one.key} ${one.description}`));
  return [...named, ...told].slice(0, most);
}

/** The row that Enter opens if none is chosen: never one that is only a guess, such as a topic that nobody knows. */
export function firstOf(rows: readonly { guess?: boolean }[]): number {
  return rows.findIndex((row) => row.guess !== true);
}

/** The row that a key leads to from another one, or from none (-1). */
export function rowAfter(at: number, key: 'ArrowDown' | 'ArrowUp', count: number): number {
  if (count === 0) return -1;
  return key === 'ArrowDown' ? Math.min(at + 1, count - 1) : Math.max(at - 1, 0);
}

/** What is typed may be a topic by its full name: it has levels. A single word is one only if the broker knows it. */
export function namesTopic(words: string): boolean {
  return words.includes('/');
}

/** The broker begins to observe topics when somebody asks for them, so that the first answer has next to none. */
const YOUNG_MS = 2000;

/**
 * Milliseconds until topics are asked for again, because their observation had only begun; null if it is older.
 * `nowMs` is the time of the broker, as far as the page knows it.
 */
export function againAfterMs(observedSince: string, nowMs: number): number | null {
  return nowMs - Date.parse(observedSince) < YOUNG_MS ? 1000 : null;
}
