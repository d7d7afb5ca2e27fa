import { expect, test } from 'vitest';
import { byPublisher, byReason, curesFor, firstOf, withOwn } from './refusals';

const row = (reason: string, client_id: string, messages: number, told = true) => ({
  reason,
  client_id,
  topic: 't',
  told,
  messages,
  at_most_less: 0,
  last_at: '',
});
const page = {
  refused: [row('queues_full', 'a', 5), row('queues_full', 'b', 3, false), row('not_allowed', 'b', 1)],
  matching: 3,
  left_out: 0,
  total: 20,
  untold: 3,
  by_reason: [
    { reason: 'queues_full', code: 151, messages: 19 },
    { reason: 'not_allowed', code: 135, messages: 1 },
  ],
  since: '',
  next: null,
};

test('sums by reason are of all messages, and of the rows of a publisher that is chosen', () => {
  expect(byReason(page, '').map((one) => one.messages)).toEqual([19, 1]);
  expect(byReason(page, 'b')).toEqual([
    { key: 'queues_full', messages: 3 },
    { key: 'not_allowed', messages: 1 },
  ]);
});

test('publishers are ranked by their refused messages', () => {
  expect(byPublisher(page, '').map((one) => one.key)).toEqual(['a', 'b']);
  expect(byPublisher(page, 'not_allowed')).toEqual([{ key: 'b', messages: 1 }]);
});

test('cures are those of the reasons that occur, or of the chosen one', () => {
  expect(curesFor(byReason(page, ''), '')).toEqual(['queues_full', 'not_allowed']);
  expect(curesFor(byReason(page, ''), 'not_allowed')).toEqual(['not_allowed']);
  expect(curesFor([{ key: 'of_a_later_version' }], '')).toEqual([]);
});

test('a publisher that is chosen has all its rows, also those behind the first page of all', () => {
  const cut = { ...page, matching: 5000 };
  const own = { ...page, refused: [row('not_allowed', 'z', 2), row('queues_full', 'z', 1)], matching: 2 };
  const of = withOwn(cut, 'z', own);
  expect(byReason(of, 'z').map((one) => one.messages)).toEqual([2, 1]);
  expect(byPublisher(of, '').map((one) => one.key)).toEqual(['a', 'b', 'z']);
  // One that is on the first page is not counted twice.
  const same = withOwn(cut, 'b', { ...own, refused: [row('queues_full', 'b', 9)] });
  expect(byPublisher(same, '')).toEqual([
    { key: 'b', messages: 9 },
    { key: 'a', messages: 5 },
  ]);
  expect(withOwn(cut, '', null)).toBe(cut);
});

test('sums that lack combinations say of how many they are', () => {
  expect(firstOf({ ...page, matching: 5000 })).toEqual({ n: 3, all: 5000 });
  expect(firstOf(page)).toBeNull();
  expect(firstOf(null)).toBeNull();
});
