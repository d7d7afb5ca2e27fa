// What would happen to a message of a topic for one of its receivers.
import type { State } from '../../ui/state';

/** A key of the texts of this page, and how it looks. */
export interface Fate {
  is: State;
  key: 'fate.sent' | 'fate.queued' | 'fate.away' | 'fate.dropped' | 'fate.full' | 'fate.over' | 'fate.other';
}

export function fateOf(receiver: {
  outcome: string;
  drop_reason?: string | null;
  queue: { connected: boolean };
}): Fate {
  switch (receiver.outcome) {
    case 'sent':
      return { is: 'ok', key: 'fate.sent' };
    case 'queued':
    case 'queued_for_older':
    case 'held':
      return receiver.queue.connected ? { is: 'warn', key: 'fate.queued' } : { is: 'off', key: 'fate.away' };
    case 'dropped':
      return { is: 'bad', key: receiver.drop_reason === 'queue_full' ? 'fate.full' : 'fate.dropped' };
    case 'passed_over':
      return { is: 'off', key: 'fate.over' };
    default:
      return { is: 'info', key: 'fate.other' };
  }
}
