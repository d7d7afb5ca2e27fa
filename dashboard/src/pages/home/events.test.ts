import { expect, test } from 'vitest';
import { eventsOf } from './events';

const at = (second: number) => new Date(second * 1000).toISOString();
const entry = (second: number, action: string, outcome = 'done') => ({
  at: at(second),
  action,
  outcome,
  who: 'mara',
  target: 'dash-2',
});

test('the newest event is first, and an alarm that was cleared has two', () => {
  const found = eventsOf(
    {
      startedAt: at(1),
      raised: [{ name: 'cpu_busy', of: null, raised_at: at(9) }],
      cleared: [{ name: 'disk_nearly_full', of: 'free', raised_at: at(3), cleared_at: at(7) }],
      audit: [entry(5, 'client.kick')],
    },
    9,
  );
  expect(found.map((one) => [one.atMs / 1000, one.kind, one.name, one.what])).toEqual([
    [9, 'raised', 'cpu_busy', ''],
    [7, 'cleared', 'disk_nearly_full', ''],
    [5, 'change', 'mara', 'client.kick'],
    [3, 'raised', 'disk_nearly_full', ''],
    [1, 'started', '', ''],
  ]);
});

test('to sign in and to look is no event, unless it was refused', () => {
  const audit = [
    entry(2, 'login'),
    entry(3, 'messages.watched'),
    entry(4, 'login', 'refused'),
    entry(5, 'client.kick', 'failed'),
  ];
  expect(eventsOf({ startedAt: at(1), audit }, 9).map((one) => [one.what, one.kind])).toEqual([
    ['client.kick', 'refused'],
    ['login', 'refused'],
    ['', 'started'],
  ]);
});

test('there are at most as many as have room', () =>
  expect(eventsOf({ startedAt: at(1), audit: [entry(2, 'a'), entry(3, 'b')] }, 2)).toHaveLength(2));
