import { expect, test } from 'vitest';
import { curesOf } from './cures';

test('a client that is away needs no larger receive maximum: it has to come back, or its session to end', () => {
  expect(curesOf('queue_full', 1, 0)).toEqual(['cure.away', 'cure.away.end', 'cure.away.expiry']);
  expect(curesOf('queue_full', 0, 2)[0]).toBe('cure.queue_full');
  expect(curesOf('queue_full', 1, 1)).toHaveLength(6);
  // Nothing is known of them: the cure for those that are connected.
  expect(curesOf('queue_full', 0, 0)[0]).toBe('cure.queue_full');
  expect(curesOf('expired', 1, 0)).toEqual(['cure.other']);
});
