import { describe, expect, test } from 'vitest';
import { emptyRows, merged, ordered } from './rows';

interface Row {
  id: string;
  n: number;
}
const name = (row: Row) => row.id;
const whole = merged(
  emptyRows<Row>(),
  {
    whole: true,
    order: ['a', 'b'],
    rows: [
      { id: 'b', n: 1 },
      { id: 'a', n: 2 },
    ],
  },
  name,
);

describe('rows of the stream', () => {
  test('are in the order of the first event', () => expect(ordered(whole).map(name)).toEqual(['a', 'b']));
  test('change one by one', () =>
    expect(ordered(merged(whole, { rows: [{ id: 'b', n: 9 }] }, name)).map((row) => row.n)).toEqual([2, 9]));
  test('go when the order does not name them', () => {
    const next = merged(whole, { order: ['b'] }, name);
    expect(ordered(next).map(name)).toEqual(['b']);
    expect(next.byName.has('a')).toBe(false);
  });
  test('a whole event forgets what was before', () =>
    expect(ordered(merged(whole, { whole: true, order: [], rows: [] }, name))).toEqual([]));
  test('a name without its row is left out', () =>
    expect(ordered(merged(whole, { order: ['a', 'c', 'b'] }, name)).map(name)).toEqual(['a', 'b']));
  test('tells the rows that did not fit', () => expect(merged(whole, { left_out: 3 }, name).leftOut).toBe(3));
});
