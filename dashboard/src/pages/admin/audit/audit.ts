// What the audit log is asked, and how an entry reads.
import type { State } from '../../../ui/state';

/** Spans before now. */
export const SPANS = { '1h': 3600, '24h': 86_400, '7d': 604_800, '30d': 2_592_000 } as const;
export type Span = keyof typeof SPANS;

export function spanOf(text: string): Span | null {
  return text === '1h' || text === '24h' || text === '7d' || text === '30d' ? text : null;
}

/** The beginning of a span, in whole minutes: the same question stays the same for a while. */
export function since(span: Span | null, nowMs: number): string {
  if (span === null) return '';
  const minute = Math.floor(nowMs / 60_000) * 60_000;
  return new Date(minute - SPANS[span] * 1000).toISOString().replace('.000Z', 'Z');
}

export const LOOK: Readonly<Record<string, State>> = {
  done: 'ok',
  failed: 'bad',
  refused: 'warn',
  unknown: 'off',
};

/** Kinds of actions, as the log names them. */
export const KINDS = [
  'administrator.*',
  'backup.*',
  'ban.*',
  'certificates.*',
  'client.*',
  'config.*',
  'key.*',
  'listener.*',
  'log.*',
  'login.*',
  'messages.*',
  'retained.*',
  'role.*',
  'session.*',
  'topic_metric.*',
  'totp.*',
  'user.*',
  'user-group.*',
] as const;
