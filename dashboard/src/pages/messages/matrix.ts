// Drops by reason, client and topic.
import type { Schemas } from '../../api/client';

type Drop = Schemas['Drops'];

/** A part of a sum. */
export interface Part {
  key: string;
  messages: number;
}

/** The sums by one column, the largest first. */
export function sumsBy(drops: readonly Drop[], key: (drop: Drop) => string): Part[] {
  const sums = new Map<string, number>();
  for (const drop of drops) sums.set(key(drop), (sums.get(key(drop)) ?? 0) + drop.messages);
  return [...sums]
    .map(([name, messages]) => ({ key: name, messages }))
    .sort((one, other) => other.messages - one.messages);
}

export interface Matrix {
  topics: string[];
  rows: { client: string; cells: number[]; sum: number }[];
  /** Clients that have no row of their own, together; null if all have one. */
  others: { clients: number; cells: number[]; sum: number } | null;
  /** The largest cell. */
  most: number;
  sums: number[];
  total: number;
}

/** Clients × topics; topics beyond `most` are one column, whose name is "". */
export function matrixOf(drops: readonly Drop[], mostTopics: number, mostClients: number): Matrix {
  const topicKey = (drop: Drop) => drop.topic ?? '';
  const ranked = sumsBy(drops, topicKey).map((part) => part.key);
  const named = ranked.filter((topic) => topic !== '').slice(0, mostTopics);
  const topics = ranked.length > named.length ? [...named, ''] : named;
  const cellsOf = (own: readonly Drop[]) =>
    topics.map((topic) =>
      own
        .filter((drop) => (topic === '' ? !named.includes(topicKey(drop)) : drop.topic === topic))
        .reduce((all, drop) => all + drop.messages, 0),
    );
  const clients = sumsBy(drops, (drop) => drop.client_id);
  const rows = clients.slice(0, mostClients).map(({ key: client, messages: sum }) => {
    return { client, cells: cellsOf(drops.filter((drop) => drop.client_id === client)), sum };
  });
  const rest = clients.slice(mostClients);
  const left = new Set(rest.map((part) => part.key));
  const others = {
    clients: rest.length,
    cells: cellsOf(drops.filter((drop) => left.has(drop.client_id))),
    sum: rest.reduce((all, part) => all + part.messages, 0),
  };
  const sums = cellsOf(drops);
  return {
    topics,
    rows,
    others: rest.length > 0 ? others : null,
    sums,
    most: Math.max(0, ...rows.flatMap((row) => row.cells)),
    total: sums.reduce((all, sum) => all + sum, 0),
  };
}

/** The step of the heat scale, 1 to 7; 0 for nothing. */
export function heat(value: number, most: number): number {
  if (value <= 0 || most <= 0) return 0;
  return Math.max(1, Math.min(7, Math.ceil((value / most) * 7)));
}

/** Short names of topics that differ: of levels that all have in common only the last one stays. */
export function shortNames(topics: readonly string[], most: number): string[] {
  const parts = topics.map((topic) => topic.split('/'));
  const least = Math.min(...parts.map((levels) => levels.length));
  let same = 0;
  while (same < least - 1 && parts.every((levels) => levels[same] === parts[0]?.[same])) same += 1;
  return parts.map((levels) => {
    const rest = levels.slice(topics.length > 1 ? same : -2).join('/');
    const half = Math.floor((most - 1) / 2);
    return rest.length <= most ? rest : `${rest.slice(0, most - 1 - half)}…${rest.slice(-half)}`;
  });
}
