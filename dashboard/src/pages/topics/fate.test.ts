import { expect, test } from 'vitest';
import { fateOf } from './fate';

const receiver = (outcome: string, connected: boolean, drop_reason: string | null = null) => ({
  outcome,
  drop_reason,
  queue: { connected },
});

test('a receiver whose queue is full gets nothing', () => {
  expect(fateOf(receiver('dropped', false, 'queue_full'))).toEqual({ is: 'bad', key: 'fate.full' });
  expect(fateOf(receiver('dropped', false, 'offline')).key).toBe('fate.dropped');
});

test('a message waits for a client that is away, or takes its turn behind others', () => {
  expect(fateOf(receiver('queued', false)).key).toBe('fate.away');
  expect(fateOf(receiver('queued_for_older', true)).key).toBe('fate.queued');
  expect(fateOf(receiver('sent', true))).toEqual({ is: 'ok', key: 'fate.sent' });
  expect(fateOf(receiver('passed_over', true)).key).toBe('fate.over');
  expect(fateOf(receiver('of a later version', true)).key).toBe('fate.other');
});
