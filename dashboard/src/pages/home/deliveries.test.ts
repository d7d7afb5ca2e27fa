import { expect, test } from 'vitest';
import { slicesOf } from './deliveries';

test('a second has the ranges in which something was delivered', () => {
  const columns: Record<string, (number | null)[]> = {
    deliveries_to_100us: [3, null, 0],
    deliveries_longer: [1, null, 0],
  };
  const found = slicesOf([1000, 2000, 3000], (name) => columns[name] ?? [null, null, null]);
  expect(found).toEqual([
    {
      atMs: 1000,
      buckets: [
        [0, 0.1, 3],
        [1000, 60_000, 1],
      ],
    },
    { atMs: 2000, buckets: [] },
    { atMs: 3000, buckets: [] },
  ]);
});
