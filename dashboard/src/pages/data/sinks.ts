// Sinks: what the configuration says of them, and what the metrics count.
import type { Schemas } from '../../api/client';
import type { State } from '../../ui/state';

export interface Counts {
  offered: number;
  written: number;
  dropped: number;
  failures: number;
  waiting: number;
  waitingBytes: number;
}

export interface Sink {
  name: string;
  /** Keys of its table and their values. */
  config: ReadonlyMap<string, Schemas['ConfigurationKey']>;
  /** null if the reader may not see metrics. */
  counts: Counts | null;
}

const METRICS: Readonly<Record<string, keyof Counts>> = {
  thrum_sink_messages_offered_total: 'offered',
  thrum_sink_messages_written_total: 'written',
  thrum_sink_messages_dropped_total: 'dropped',
  thrum_sink_failures_total: 'failures',
  thrum_sink_messages_waiting: 'waiting',
  thrum_sink_waiting_bytes: 'waitingBytes',
};

/** The counts of each sink, in the text of the metrics for Prometheus. */
export function countsOf(text: string): Map<string, Counts> {
  const found = new Map<string, Counts>();
  for (const line of text.split('\n')) {
    if (!line.startsWith('thrum_sink_')) continue;
    const match = /^(\w+)\{sink="((?:[^"\\]|\\.)*)"\} (\S+)/.exec(line);
    const what = match ? METRICS[match[1] ?? ''] : undefined;
    if (!match || what === undefined) continue;
    const name = (match[2] ?? '').replace(/\\(.)/g, (_, one: string) => (one === 'n' ? '\n' : one));
    const counts = found.get(name) ?? {
      offered: 0,
      written: 0,
      dropped: 0,
      failures: 0,
      waiting: 0,
      waitingBytes: 0,
    };
    counts[what] = Number(match[3]);
    found.set(name, counts);
  }
  return found;
}

/** Sinks by name, of the keys below `sinks.`. */
export function sinksOf(
  keys: readonly Schemas['ConfigurationKey'][],
  counts: ReadonlyMap<string, Counts> | null,
): Sink[] {
  const tables = new Map<string, Map<string, Schemas['ConfigurationKey']>>();
  for (const key of keys) {
    const match = /^sinks\.(.+)\.([^.]+)$/.exec(key.key);
    if (!match) continue;
    const [, name = '', field = ''] = match;
    const table = tables.get(name) ?? new Map<string, Schemas['ConfigurationKey']>();
    table.set(field, key);
    tables.set(name, table);
  }
  return [...tables].map(([name, config]) => ({ name, config, counts: counts?.get(name) ?? null }));
}

/** Figures of one moment. */
export interface Sample {
  atMs: number;
  counts: ReadonlyMap<string, Counts>;
}

/** A rate between the last two samples; null before the second, or after a restart of the broker. */
export function rateOf(
  samples: readonly Sample[],
  name: string,
  what: 'written' | 'offered' | 'dropped' | 'failures',
): number | null {
  return rates(samples.slice(-2), name, what).at(-1) ?? null;
}

/** The rate of each second between samples, one less than there are samples. */
export function rates(
  samples: readonly Sample[],
  name: string,
  what: 'written' | 'offered' | 'dropped' | 'failures',
): (number | null)[] {
  return samples.slice(1).map((sample, index) => {
    const before = samples[index];
    const from = before?.counts.get(name);
    const to = sample.counts.get(name);
    if (!before || !from || !to || to[what] < from[what]) return null;
    return ((to[what] - from[what]) * 1000) / (sample.atMs - before.atMs);
  });
}

export type How = 'stuck' | 'failing' | 'losing' | 'filling' | 'delivers' | 'idle' | 'unknown';
export const LOOK: Readonly<Record<How, State>> = {
  stuck: 'bad',
  failing: 'bad',
  losing: 'bad',
  filling: 'warn',
  delivers: 'ok',
  idle: 'ok',
  unknown: 'off',
};

/** Share of the queue from which it is nearly full. */
const NEARLY = 0.8;

/** How a sink is, by its alarm and its counts. */
export function howIs(
  sink: Sink,
  alarms: readonly { name: string; of?: string | null }[],
  samples: readonly Sample[],
): How {
  if (alarms.some((alarm) => alarm.name === 'sink_not_delivering' && alarm.of === sink.name)) return 'stuck';
  const { counts } = sink;
  if (counts === null) return 'unknown';
  if ((rateOf(samples, sink.name, 'failures') ?? 0) > 0) return 'failing';
  if ((rateOf(samples, sink.name, 'dropped') ?? 0) > 0) return 'losing';
  if (share(sink) >= NEARLY) return 'filling';
  return counts.written > 0 ? 'delivers' : 'idle';
}

/** How full the queue is, from 0 to 1, by messages or bytes, whichever is more. */
export function share(sink: Sink): number {
  const { counts } = sink;
  if (counts === null) return 0;
  const messages = sink.config.get('queue_messages')?.value;
  const bytes = sizeOf(sink.config.get('queue_bytes')?.value);
  return Math.max(
    typeof messages === 'number' && messages > 0 ? counts.waiting / messages : 0,
    bytes !== null && bytes > 0 ? counts.waitingBytes / bytes : 0,
  );
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

/** A size as the configuration writes it, in bytes. */
export function sizeOf(value: unknown): number | null {
  if (typeof value === 'number') return value;
  const match = typeof value === 'string' ? /^([\d._]+)\s*([A-Za-z]*)$/.exec(value) : null;
  const unit = match ? UNITS[match[2] ?? ''] : undefined;
  return match && unit !== undefined ? Number((match[1] ?? '').replaceAll('_', '')) * unit : null;
}

/** Whether every message that came is written, dropped or waits. */
export function addsUp(counts: Counts): boolean {
  return counts.offered === counts.written + counts.waiting;
}
