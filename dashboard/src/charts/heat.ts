// A heat map of latencies: columns of time, rows of latency, one hue in seven steps.
import { stepAbove } from './scale';

/** How many measured values lie between two latencies. */
export type Bucket = readonly [lowMs: number, highMs: number, count: number];

/** What was measured in one step of time. */
export interface Slice {
  atMs: number;
  buckets: readonly Bucket[];
}

/** A field of the map. */
export interface Cell {
  fromMs: number;
  toMs: number;
  low: number;
  high: number;
  count: number;
  /** Part of the values of its column, from 0 to 1. */
  share: number;
}

export const LEVELS = 7;
/** Each level has this many times the share of the one below. */
const RATIO = 2.5;
const STEPS_SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400] as const;
/** A bucket that begins at 0 is drawn from this part of its end. */
const FIRST_PART = 1 / 1.6;

/** Milliseconds of a column, so that there are at most `most` columns. */
export function columnMs(spanMs: number, most: number): number {
  const wanted = spanMs / Math.max(1, most) / 1000;
  const found = STEPS_SECONDS.find((step) => step >= wanted) ?? STEPS_SECONDS.at(-1) ?? 1;
  return found * 1000;
}

/** Slices as fields. A slice tells of the second that ends at its time. Columns begin at multiples of their width. */
export function cells(slices: readonly Slice[], widthMs: number): Cell[] {
  const columns = new Map<number, Map<string, { low: number; high: number; count: number }>>();
  for (const slice of slices) {
    const from = Math.floor((slice.atMs - 1) / widthMs) * widthMs;
    const column = columns.get(from) ?? new Map<string, { low: number; high: number; count: number }>();
    columns.set(from, column);
    for (const [low, high, count] of slice.buckets) {
      if (count <= 0) continue;
      const key = `${low} ${high}`;
      const known = column.get(key);
      if (known) known.count += count;
      else column.set(key, { low: low > 0 ? low : high * FIRST_PART, high, count });
    }
  }
  const found: Cell[] = [];
  for (const [fromMs, column] of columns) {
    const all = [...column.values()].reduce((sum, bucket) => sum + bucket.count, 0);
    for (const bucket of column.values())
      found.push({ fromMs, toMs: fromMs + widthMs, ...bucket, share: bucket.count / all });
  }
  return found;
}

/** The share that the deepest level reaches up to, in steps of 1, 2 and 5, so that colours do not change each second. */
export function topShare(found: readonly Cell[]): number {
  const most = found.reduce((top, cell) => Math.max(top, cell.share), 0);
  return most === 0 ? 0.1 : Math.min(1, stepAbove(most));
}

/** The level of a share, from 1 to 7. */
export function levelOf(share: number, top: number): number {
  if (share <= 0) return 1;
  const below = Math.floor(Math.log(top / share) / Math.log(RATIO) + 1e-9);
  return Math.min(LEVELS, Math.max(1, LEVELS - below));
}

/** Buckets of several slices as one list, in their order. */
export function together(slices: readonly Slice[]): Bucket[] {
  const sums = new Map<string, Bucket>();
  for (const slice of slices)
    for (const [low, high, count] of slice.buckets) {
      const key = `${low} ${high}`;
      sums.set(key, [low, high, (sums.get(key)?.[2] ?? 0) + count]);
    }
  return [...sums.values()].sort((one, other) => one[0] - other[0]);
}

/** The bucket that has a part of the values, from 0 to 1, at or below its end; null without values. */
export function bucketAt(buckets: readonly Bucket[], part: number): Bucket | null {
  const all = buckets.reduce((sum, [, , count]) => sum + count, 0);
  let below = 0;
  for (const bucket of buckets) {
    below += bucket[2];
    if (bucket[2] > 0 && below >= part * all) return bucket;
  }
  return null;
}

/** The bucket with most values. */
export function fullest(buckets: readonly Bucket[]): Bucket | null {
  return buckets.reduce<Bucket | null>(
    (most, bucket) => (most === null || bucket[2] > most[2] ? bucket : most),
    null,
  );
}

/** Smallest and largest latency of fields; nulls without any. */
export function rowsOf(found: readonly Cell[]): [number | null, number | null] {
  let low: number | null = null;
  let high: number | null = null;
  for (const cell of found) {
    if (low === null || cell.low < low) low = cell.low;
    if (high === null || cell.high > high) high = cell.high;
  }
  return [low, high];
}
