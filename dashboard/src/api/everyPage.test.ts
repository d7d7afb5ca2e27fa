import { describe, expect, test } from 'vitest';
import { everyPage } from './everyPage';

const pages: Record<string, { rows: number[]; next: string | null }> = {
  '': { rows: [1, 2], next: 'b' },
  b: { rows: [3, 4], next: 'c' },
  c: { rows: [5], next: null },
};
const ask = (cursor: string | undefined) => Promise.resolve(pages[cursor ?? ''] ?? { rows: [], next: null });

describe('a list in pages', () => {
  test('is read to its end', async () =>
    expect(await everyPage(ask)).toEqual({ rows: [1, 2, 3, 4, 5], cut: false }));
  test('is cut at the most, and says so', async () =>
    expect(await everyPage(ask, 3)).toEqual({ rows: [1, 2, 3], cut: true }));
  test('that ends at the most is not cut', async () => expect((await everyPage(ask, 5)).cut).toBe(false));
});
