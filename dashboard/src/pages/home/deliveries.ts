// The deliveries of each second by their time in the broker, as slices of a heat map.
import type { Bucket, Slice } from '../../charts/heat';

/** The figures that count them, and where their ranges begin and end in milliseconds. */
const RANGES = [
  ['deliveries_to_100us', 0, 0.1],
  ['deliveries_to_200us', 0.1, 0.2],
  ['deliveries_to_500us', 0.2, 0.5],
  ['deliveries_to_1ms', 0.5, 1],
  ['deliveries_to_2ms', 1, 2],
  ['deliveries_to_5ms', 2, 5],
  ['deliveries_to_10ms', 5, 10],
  ['deliveries_to_20ms', 10, 20],
  ['deliveries_to_50ms', 20, 50],
  ['deliveries_to_100ms', 50, 100],
  ['deliveries_to_1s', 100, 1000],
  // The broker measures up to a minute.
  ['deliveries_longer', 1000, 60_000],
] as const;

/** The slices of these seconds; `column` has the values of a figure. */
export function slicesOf(
  at: readonly number[],
  column: (name: string) => readonly (number | null)[],
): Slice[] {
  const columns = RANGES.map(([name]) => column(name));
  return at.map((atMs, second) => ({
    atMs,
    buckets: RANGES.flatMap(([, low, high], range): Bucket[] => {
      const count = columns[range]?.[second] ?? 0;
      return count > 0 ? [[low, high, count]] : [];
    }),
  }));
}
