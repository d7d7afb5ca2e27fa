import { expect, test } from 'vitest';
import { Paged, type Part } from './paged.svelte';

/** A list whose answers come when the test says so. */
function list() {
  const asked: { cursor: string | undefined; answer: (part: Part<string, number>) => void }[] = [];
  const paged = new Paged<string, number>(
    (cursor) => new Promise((answer) => asked.push({ cursor, answer })),
  );
  return { asked, paged };
}

test('a late answer changes nothing, neither rows nor what else it says', async () => {
  const { asked, paged } = list();
  const old = paged.first();
  const fresh = paged.first();
  asked[1]?.answer({ rows: ['new'], rest: 2 });
  await fresh;
  asked[0]?.answer({ rows: ['old'], rest: 1 });
  await old;
  expect([paged.rows, paged.rest]).toEqual([['new'], 2]);
});

test('asking again asks for the page that was asked for last', async () => {
  const { asked, paged } = list();
  const first = paged.first();
  asked[0]?.answer({ rows: ['a'], next: 'second' });
  await first;
  const turned = paged.turn(1);
  const again = paged.again();
  expect(asked.map((one) => one.cursor)).toEqual([undefined, 'second', 'second']);
  asked[2]?.answer({ rows: ['b'] });
  await again;
  asked[1]?.answer({ rows: ['late'] });
  await turned;
  expect([paged.page, paged.rows]).toEqual([1, ['b']]);
  void paged.first();
  void paged.again();
  expect(asked.slice(3).map((one) => one.cursor)).toEqual([undefined, undefined]);
  asked[4]?.answer({ rows: ['c'] });
  await Promise.resolve();
  await Promise.resolve();
  expect([paged.page, paged.rows]).toEqual([0, ['c']]);
});
