// Which keys the reader wants to see.
import type { Schemas } from '../../../api/client';

export type Key = Schemas['ConfigurationKey'];

export const SHOWS = ['all', 'set', 'pinned', 'waits', 'changed'] as const;
export type Show = (typeof SHOWS)[number];

/** Keys that have all words in their name, their description (also as the page tells it) or their value. */
export function found(keys: readonly Key[], text: string, told: (key: Key) => string = () => ''): Key[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0) return [...keys];
  return keys
    .map((key) => ({ key, name: key.key.toLowerCase(), rank: 0 }))
    .filter((one) => {
      const all =
        `${one.name} ${told(one.key)} ${one.key.description} ${JSON.stringify(one.key.value)}`.toLowerCase();
      one.rank = words.every((word) => one.name.includes(word)) ? 0 : 1;
      return words.every((word) => all.includes(word));
    })
    .sort((a, b) => a.rank - b.rank)
    .map((one) => one.key);
}

export function shownBy(keys: readonly Key[], show: Show, changes: Readonly<Record<string, unknown>>): Key[] {
  switch (show) {
    case 'all':
      return [...keys];
    case 'set':
      return keys.filter((key) => key.origin !== 'default');
    case 'pinned':
      return keys.filter((key) => key.pinned);
    case 'waits':
      return keys.filter((key) => key.waits);
    case 'changed':
      return keys.filter((key) => Object.hasOwn(changes, key.key));
  }
}
