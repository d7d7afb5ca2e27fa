// The open part of the tree as rows.
import type { Schemas } from '../../api/client';
import { type LiveRows, ordered } from '../../api/rows';
import { isTopic } from '../../format/topicFilter';

export type Topic = Schemas['Topic'];

/** A level that is open, as the stream tells it. */
export interface Level {
  list: LiveRows<Topic>;
  /** There are more rows than the stream tells. */
  more: boolean;
  /** Messages that the rows do not add up to. */
  others: number;
}

export type Row =
  | { kind: 'topic'; key: string; depth: number; topic: Topic; open: boolean }
  | { kind: 'more'; key: string; depth: number; missing: number }
  | { kind: 'wait'; key: string; depth: number };

/** What Enter opens: a topic by its full name, the first one that was found, else what is typed. */
export function meant(found: readonly Topic[], text: string): string {
  const topics = found.map((one) => one.topic);
  if (topics.includes(text) || (isTopic(text) && text.includes('/'))) return text;
  return topics[0] ?? text;
}

/** Where an arrow leads from a link of a list, or from none (-1): its number, -1 for what is above, null for no arrow. */
export function linkAfter(from: number, key: string, count: number): number | null {
  switch (key) {
    case 'ArrowDown':
      return Math.min(from + 1, count - 1);
    case 'ArrowUp':
      return Math.max(from - 1, -1);
    case 'Home':
      return 0;
    case 'End':
      return count - 1;
    default:
      return null;
  }
}

/** The prefix of what is below a topic. */
export function below(topic: string): string {
  return `${topic}/`;
}

/** The prefixes that have to be open to see a topic: "a/b/c" has "a/", "a/b/". */
export function above(topic: string): string[] {
  const parts = topic.split('/');
  return parts.slice(0, -1).map((_, index) => `${parts.slice(0, index + 1).join('/')}/`);
}

/** Begins the keys of rows that are no topic: no topic has this character [MQTT-1.5.4-2]. */
const NOTE = '\0';

/** The rows of the open levels, in the order of the tree. */
export function rowsOf(levels: ReadonlyMap<string, Level>, open: ReadonlySet<string>): Row[] {
  const walk = (under: string, depth: number, children: number | null): Row[] => {
    const level = levels.get(under);
    if (!level) return [{ kind: 'wait', key: `${NOTE}wait ${under}`, depth }];
    const rows: Row[] = [];
    const list = ordered(level.list);
    for (const topic of list) {
      const prefix = below(topic.topic);
      const isOpen = topic.children > 0 && open.has(prefix);
      const inside = isOpen && depth < 32 ? walk(prefix, depth + 1, topic.children) : [];
      rows.push({ kind: 'topic', key: topic.topic, depth, topic, open: isOpen }, ...inside);
    }
    if (level.more)
      rows.push({
        kind: 'more',
        key: `${NOTE}more ${under}`,
        depth,
        missing: Math.max(0, (children ?? 0) - list.length),
      });
    return rows;
  };
  return walk('', 0, null);
}

/** Where a key leads from a row: the index of another row of a topic, null if it leads nowhere. */
export function focusAfter(rows: readonly Row[], from: number, key: string): number | null {
  const topics = rows.flatMap((row, index) => (row.kind === 'topic' ? [index] : []));
  const depth = rows[from]?.depth ?? 0;
  const found = (() => {
    switch (key) {
      case 'ArrowDown':
      case 'j':
        return topics.find((index) => index > from);
      case 'ArrowUp':
      case 'k':
        return topics.findLast((index) => index < from);
      case 'ArrowRight':
        return topics.find((index) => index === from + 1 && (rows[index]?.depth ?? 0) > depth);
      case 'ArrowLeft':
        return topics.findLast((index) => index < from && (rows[index]?.depth ?? 0) < depth);
      case 'Home':
        return topics[0];
      case 'End':
        return topics.at(-1);
      default:
        return undefined;
    }
  })();
  return found === undefined || found === from ? null : found;
}

/** How many rows of each level the stream is asked for: 400 for all of them together. */
export function limitFor(levels: number): number {
  return Math.max(20, Math.min(100, Math.floor(400 / Math.max(1, levels))));
}
