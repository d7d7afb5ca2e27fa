// The timeline of a client in words.
import type { Schemas } from '../../api/client';
import { count } from '../../format/numbers';
import type { IconName } from '../../ui/icons';
import type { State } from '../../ui/state';

export type Event = Schemas['TimelineEvent'];
export type Which = 'all' | 'problems' | 'access';

export interface Look {
  icon: IconName;
  state: State | null;
  kinds: readonly Which[];
}

/** Icon and state of an event, and in which of the views it is. */
export function lookOf(event: Event): Look {
  switch (event.event) {
    case 'connected':
      return { icon: 'plug', state: 'ok', kinds: ['all'] };
    case 'disconnected': {
      const own = event.cause.kind === 'by_client';
      if (event.cause.kind === 'taken_over')
        return { icon: 'swap', state: 'warn', kinds: ['all', 'problems'] };
      return own
        ? { icon: 'cut', state: null, kinds: ['all'] }
        : { icon: 'cut', state: 'bad', kinds: ['all', 'problems'] };
    }
    case 'refused':
    case 'publish_refused':
    case 'subscription_refused':
    case 'subscription_revoked':
      return { icon: 'lock', state: 'warn', kinds: ['all', 'problems', 'access'] };
    case 'dropped':
      return { icon: 'messages', state: 'bad', kinds: ['all', 'problems'] };
    case 'slowed':
      return { icon: 'chart', state: 'warn', kinds: ['all', 'problems'] };
    case 'will_published':
    case 'will_dropped':
      return { icon: 'bell', state: null, kinds: ['all'] };
    case 'session_ended':
      return { icon: 'stop', state: null, kinds: ['all'] };
    case 'subscribed':
    case 'unsubscribed':
      return { icon: 'edit', state: null, kinds: ['all', 'access'] };
    default:
      return { icon: 'info', state: null, kinds: ['all'] };
  }
}

export interface Told {
  /** The clause that matters. */
  head: string;
  /** The cause. */
  rest: string;
}

/** A sentence of the broker as its main clause and the cause: "disconnected after 3 h: keep alive missed: …". */
export function told(text: string): Told {
  // Numbers of messages as everywhere on the page: 192 352.
  const grouped = text.replace(/\b\d{4,}(?= messages?\b)/g, (digits) => count(Number(digits)));
  const whole = grouped.charAt(0).toUpperCase() + grouped.slice(1);
  const colon = whole.indexOf(': ');
  const comma = whole.indexOf(', ');
  const semicolon = whole.indexOf('; ');
  const ends = [colon, comma, semicolon].filter((end) => end > 0);
  if (ends.length === 0) return { head: whole, rest: '' };
  const end = Math.min(...ends);
  const rest = whole.slice(end + 2);
  return { head: whole.slice(0, end), rest: rest.charAt(0).toUpperCase() + rest.slice(1) };
}

/** Days with their events, the newest first. */
export function byDay(events: readonly Event[], which: Which): { day: string; events: Event[] }[] {
  const days: { day: string; events: Event[] }[] = [];
  for (const event of [...events].reverse()) {
    if (!lookOf(event).kinds.includes(which)) continue;
    const day = new Date(event.at).toDateString();
    const last = days.at(-1);
    if (last?.day === day) last.events.push(event);
    else days.push({ day, events: [event] });
  }
  return days;
}
