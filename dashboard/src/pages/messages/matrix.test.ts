import { describe, expect, test } from 'vitest';
import { heat, matrixOf, shortNames, sumsBy } from './matrix';

const drop = (client: string, topic: string | null, messages: number) => ({
  client_id: client,
  topic,
  messages,
  reason: 'queue_full',
  at_most_less: 0,
  last_at: '',
});
const drops = [
  drop('a', 'x', 5),
  drop('b', 'x', 3),
  drop('a', 'y', 1),
  drop('b', null, 2),
  drop('b', 'z', 1),
];

describe('drops', () => {
  test('are summed by client, the largest first', () =>
    expect(sumsBy(drops, (one) => one.client_id)).toEqual([
      { key: 'a', messages: 6 },
      { key: 'b', messages: 6 },
    ]));
  test('are a matrix whose sums add up', () => {
    const matrix = matrixOf(drops, 1, 5);
    expect(matrix.topics).toEqual(['x', '']);
    expect(matrix.rows.map((row) => row.cells)).toEqual([
      [5, 1],
      [3, 3],
    ]);
    expect(matrix.sums).toEqual([8, 4]);
    expect(matrix.total).toBe(12);
  });
  test('of clients without a row are one row, so that the sums are those of all', () => {
    const matrix = matrixOf(drops, 1, 1);
    expect(matrix.rows.map((row) => row.client)).toEqual(['a']);
    expect(matrix.others).toEqual({ clients: 1, cells: [3, 3], sum: 6 });
    expect(matrix.sums).toEqual([8, 4]);
    expect(matrixOf(drops, 1, 2).others).toBeNull();
  });
  test('have a heat in seven steps', () =>
    expect([0, 1, 50, 100].map((value) => heat(value, 100))).toEqual([0, 1, 4, 7]));
  test('nothing has no heat', () => expect(heat(0, 0)).toBe(0));
});

test('topics that begin or end alike keep what tells them apart', () => {
  expect(shortNames(['site/a/line4/vibration', 'site/b/line4/vibration'], 13)).toEqual([
    'a/line…ration',
    'b/line…ration',
  ]);
  expect(shortNames(['site/a/temp', 'site/b/temp'], 13)).toEqual(['a/temp', 'b/temp']);
  expect(shortNames(['site/a/temp'], 13)).toEqual(['a/temp']);
});
