// Certificates of listeners, each once, the one that ends first above.
import type { Schemas } from '../../../api/client';
import type { State } from '../../../ui/state';

type Listener = Schemas['ListenerDetail'];

export interface Shown {
  certificate: Schemas['Certificate'];
  /** Listeners that show it. */
  listeners: string[];
}

/** Days before the end from which the broker raises an alarm, unless `alarms.certificate` says otherwise. */
export const SOON_DAYS = 14;

export function certificates(listeners: readonly Listener[]): Shown[] {
  const shown = new Map<string, Shown>();
  for (const listener of listeners)
    for (const certificate of listener.tls?.certificates ?? []) {
      const key = `${certificate.file} ${certificate.serial}`;
      const one = shown.get(key);
      if (one) one.listeners.push(listener.name);
      else shown.set(key, { certificate, listeners: [listener.name] });
    }
  return [...shown.values()].sort((a, b) => a.certificate.days_left - b.certificate.days_left);
}

/** How urgent a certificate is. */
export function urgency(certificate: { days_left: number; not_before: string }, nowMs: number): State {
  if (certificate.days_left < 0 || Date.parse(certificate.not_before) > nowMs) return 'bad';
  if (certificate.days_left <= 2) return 'bad';
  return certificate.days_left < SOON_DAYS ? 'warn' : 'ok';
}

/** Which sentence tells how long it is valid. */
export function lasting(
  certificate: { days_left: number; not_before: string },
  nowMs: number,
): 'expired' | 'early' | 'today' | 'left' {
  if (Date.parse(certificate.not_before) > nowMs) return 'early';
  if (certificate.days_left < 0) return 'expired';
  return certificate.days_left === 0 ? 'today' : 'left';
}

/** What the page says first about listeners. */
export function verdict(
  listeners: readonly Listener[],
  nowMs: number,
): {
  is: State;
  say: 'expired' | 'soon' | 'stopped' | 'open' | 'none';
  first: Shown | null;
  stopped: string[];
} {
  const all = certificates(listeners);
  const first = all[0] ?? null;
  const stopped = listeners.filter((one) => one.state === 'stopped').map((one) => one.name);
  if (first) {
    const is = urgency(first.certificate, nowMs);
    if (is === 'bad' && first.certificate.days_left < 0) return { is, say: 'expired', first, stopped };
    if (is !== 'ok') return { is, say: 'soon', first, stopped };
  }
  if (stopped.length > 0) return { is: 'warn', say: 'stopped', first, stopped };
  if (!listeners.some((one) => one.state === 'open')) return { is: 'warn', say: 'none', first, stopped };
  return { is: 'ok', say: 'open', first, stopped };
}
