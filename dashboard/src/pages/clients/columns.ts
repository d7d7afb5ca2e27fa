// The columns of the list of clients.
import type { Schemas } from '../../api/client';
import { count, joined, memory } from '../../format/numbers';
import { type Language, age, span } from '../../format/time';
import type { Figure } from '../../ui/figures/table';

type Client = Schemas['Client'];

export const COLUMNS = [
  'user',
  'address',
  'listener',
  'version',
  'received',
  'sent',
  'dropped',
  'inflight',
  'subscriptions',
  'queue',
  'queue_bytes',
  'oldest',
  'expiry',
  'idle',
] as const;
export type Column = (typeof COLUMNS)[number];
export const USUAL: readonly Column[] = ['user', 'listener', 'received', 'sent', 'dropped', 'queue', 'idle'];

/** The figures of which a column shows one each. */
export const FIGURE_OF: Readonly<Partial<Record<Column, Figure>>> = {
  received: 'client_messages',
  sent: 'client_messages',
  dropped: 'client_dropped',
  inflight: 'client_inflight',
  subscriptions: 'client_subscriptions',
  queue: 'client_queue',
  queue_bytes: 'client_queue',
  oldest: 'client_oldest',
  expiry: 'client_kept',
  idle: 'client_silent',
};

/** What the broker sorts by, and the classes that let a column leave when there is no room. */
export const SHAPE: Readonly<Record<Column, { sort: string; place: string }>> = {
  user: { sort: 'user', place: 'p4' },
  address: { sort: 'address', place: 'p4' },
  listener: { sort: 'listener', place: 'p5' },
  version: { sort: 'protocol_version', place: 'p5' },
  received: { sort: 'messages_received', place: 'n p3' },
  sent: { sort: 'messages_sent', place: 'n p3' },
  dropped: { sort: 'messages_dropped', place: 'n p2' },
  inflight: { sort: 'inflight', place: 'n p4' },
  subscriptions: { sort: 'subscriptions', place: 'n p4' },
  queue: { sort: 'queued_messages', place: 'n' },
  queue_bytes: { sort: 'queued_bytes', place: 'n p4' },
  oldest: { sort: 'oldest_queued_secs', place: 'n p4' },
  expiry: { sort: 'session_expiry_secs', place: 'n p5' },
  idle: { sort: 'idle_secs', place: 'n p5' },
};

/** The columns that an address names; the usual ones if it names none. */
export function columnsOf(names: string): Column[] {
  if (names === '') return [...USUAL];
  const wanted = names.split(',');
  return COLUMNS.filter((column) => wanted.includes(column));
}

export function cell(client: Client, column: Column, language: Language): string {
  switch (column) {
    case 'user':
      return client.user ?? '–';
    case 'address':
      return client.peer ?? '–';
    case 'listener':
      return client.listener ?? '–';
    case 'version':
      return client.protocol_version;
    case 'received':
      return count(client.messages_received);
    case 'sent':
      return count(client.messages_sent);
    case 'dropped':
      return count(client.messages_dropped);
    case 'inflight':
      return count(client.inflight);
    case 'subscriptions':
      return count(client.subscriptions);
    case 'queue':
      return count(client.queued_messages);
    case 'queue_bytes':
      return joined(memory(client.queued_bytes));
    case 'oldest':
      return span(client.oldest_queued_secs, language);
    case 'expiry':
      return client.session_expiry_secs === 0 ? '–' : span(client.session_expiry_secs, language);
    case 'idle':
      return age(client.idle_secs, language);
  }
}
