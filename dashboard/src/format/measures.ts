// Figures of benchmarks by their names: `e2e.p99` is a latency, `broker.rss` is memory.
import { THIN, type WithUnit, NONE, count, figure, percent, rate, traffic } from './numbers';

export type Measure = 'ns' | 'ms' | 'seconds' | 'share' | 'bytes' | 'rate' | 'cores' | 'µs' | 'count';

const STATISTIC = /\.(min|mean|p[\d.]+|max)$/;

/** What a figure is. Latencies are in milliseconds. */
export function measureOf(name: string): Measure {
  if (STATISTIC.test(name)) return 'ms';
  if (name === 'delivered' || name.endsWith('_ratio') || name === 'broker.cpu') return 'share';
  if (name.startsWith('rate.') || name === 'connect.rate') return 'rate';
  if (name === 'broker.cpu_per_message') return 'µs';
  if (name.endsWith('cores')) return 'cores';
  if (name.endsWith('rss') || name.includes('bytes') || name.endsWith('memory')) return 'bytes';
  return 'count';
}

/** The unit of an answer as what it is; by the name of the figure if it has none that is known. */
export function measureOfUnit(unit: string, name: string): Measure {
  switch (unit) {
    case 'ns':
    case 'ms':
      return unit;
    case 's':
      return 'seconds';
    case 'share':
    case 'ratio':
    case '%':
      return 'share';
    case 'B':
    case 'bytes':
      return 'bytes';
    case '/s':
    case 'per_sec':
      return 'rate';
    case 'cores':
      return 'cores';
    case 'us':
    case 'µs':
      return 'µs';
    case 'count':
      return 'count';
    default:
      return measureOf(name);
  }
}

export function measured(value: number | null | undefined, measure: Measure): WithUnit {
  if (value === null || value === undefined) return { value: NONE, unit: '' };
  switch (measure) {
    case 'ns':
      return latency(value / 1e6);
    case 'ms':
      return latency(value);
    case 'seconds':
      return latency(value * 1000);
    case 'µs':
      return latency(value / 1000);
    case 'share': {
      // All but a few is not all.
      const text = value < 1 && value > 0.9995 ? `>99.9` : percent(value).replace(/\s*%$/, '');
      return { value: text, unit: '%' };
    }
    case 'bytes':
      // Limits are written in GB, so the figures beside them are, too.
      return traffic(value);
    case 'rate':
      return { value: rate(value), unit: '/s' };
    case 'cores':
      return { value: figure(value), unit: 'cores' };
    case 'count':
      return { value: Number.isInteger(value) ? count(value) : figure(value), unit: '' };
  }
}

/** A latency with three digits, as comparisons need them: 4.43 ms. */
export function latency(ms: number | null | undefined): WithUnit {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return { value: NONE, unit: 'ms' };
  if (ms >= 999.5) return { value: figure(ms / 1000), unit: 's' };
  if (ms >= 0.0995 || ms === 0) return { value: figure(ms), unit: 'ms' };
  return { value: figure(ms * 1000), unit: 'µs' };
}

const SIGNS: Readonly<Record<Sign, string>> = { '<': '<', '<=': '≤', '==': '=', '>=': '≥', '>': '>' };

/** A condition as a person reads it: `== 100%` is "= 100 %". One that is not understood stays as it is. */
export function conditionText(text: string | null | undefined): string {
  const found = conditionOf(text);
  if (!found) return text ?? '';
  const [, number = '', unit = ''] = /^([\d._]+)(.*)$/.exec(found.text) ?? [];
  return `${SIGNS[found.sign]} ${number.replaceAll('_', THIN)}${unit === '' || unit === '/s' ? unit : THIN + unit}`;
}

export type Sign = '<' | '<=' | '==' | '>=' | '>';

/** A limit as it is written: `< 50ms`. */
export interface Condition {
  sign: Sign;
  /** As written. */
  text: string;
  /** Milliseconds, a share from 0 to 1, bytes, or the number itself. */
  value: number;
}

const SCALES: Readonly<Record<string, number>> = {
  '': 1,
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  '%': 0.01,
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
  '/s': 1,
  cores: 1,
};

/** Reads a condition; null if it is none. */
export function conditionOf(text: string | null | undefined): Condition | null {
  const found = /^\s*(<=|<|==|>=|>)\s*([\d._]+)\s*([^\s\d]*)\s*$/.exec(text ?? '');
  const [, sign, number, unit = ''] = found ?? [];
  const scale = SCALES[unit];
  if (sign === undefined || number === undefined || scale === undefined || !isSign(sign)) return null;
  return { sign, text: `${number}${unit}`, value: Number(number.replaceAll('_', '')) * scale };
}

function isSign(text: string): text is Sign {
  return ['<', '<=', '==', '>=', '>'].includes(text);
}
