// Messages that were refused to their publishers: sums, and what to change.
import type { Schemas } from '../../api/client';

type Page = Schemas['RefusedPublishPage'];
type Row = Schemas['RefusedPublishes'];

const REASONS = [
  'not_allowed',
  'reserved_topic',
  'topic_too_long',
  'payload_too_large',
  'queues_full',
  'memory_short',
  'retained_limit',
  'disk_full',
  'sink_full',
] as const;

export type RefusalReason = (typeof REASONS)[number];

/** A reason that this page knows. */
export function knownReason(reason: string): RefusalReason | null {
  return REASONS.find((one) => one === reason) ?? null;
}

/**
 * The first page of all, with the rows of a publisher that is chosen as the broker lists them for it alone: those that
 * are not frequent enough for the first page have to count, too.
 */
export function withOwn(page: Page, publisher: string, own: Page | null): Page {
  if (publisher === '' || own === null) return page;
  const others = page.refused.filter((row) => row.client_id !== publisher);
  return { ...page, refused: [...others, ...own.refused] };
}

/** How many combinations the rows have, and how many there are; null if these are all. */
export function firstOf(page: Page | null): { n: number; all: number } | null {
  if (page === null || page.matching <= page.refused.length) return null;
  return { n: page.refused.length, all: page.matching };
}

/** The sums by reason: of all messages, or of the rows of one publisher. */
export function byReason(page: Page, publisher: string): { key: string; messages: number }[] {
  if (publisher === '') return page.by_reason.map((one) => ({ key: one.reason, messages: one.messages }));
  return sums(
    page.refused.filter((row) => row.client_id === publisher),
    (row) => row.reason,
  );
}

/** The sums by publisher: of all reasons, or of one. */
export function byPublisher(page: Page, reason: string): { key: string; messages: number }[] {
  return sums(
    page.refused.filter((row) => reason === '' || row.reason === reason),
    (row) => row.client_id,
  );
}

function sums(rows: readonly Row[], key: (row: Row) => string): { key: string; messages: number }[] {
  const found = new Map<string, number>();
  for (const row of rows) found.set(key(row), (found.get(key(row)) ?? 0) + row.messages);
  return [...found]
    .map(([name, messages]) => ({ key: name, messages }))
    .sort((one, other) => other.messages - one.messages);
}

/** Which cures are shown: that of the chosen reason, or those of the three most frequent ones. */
export function curesFor(parts: readonly { key: string }[], chosen: string): RefusalReason[] {
  const keys = chosen === '' ? parts.map((part) => part.key) : [chosen];
  return keys
    .map((key) => knownReason(key))
    .filter((key) => key !== null)
    .slice(0, 3);
}
