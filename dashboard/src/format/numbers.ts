// Numbers as people read them. Every figure of the dashboard is written by one of these functions.

/** A narrow space that does not break, between groups of three digits. */
export const THIN = '\u202f';
/** Stands for a value that is not known. */
export const NONE = '–';

type Maybe = number | null | undefined;

/** 12431 as "12 431". */
export function count(value: Maybe): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const whole = Math.round(Math.abs(value)).toString();
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, THIN);
  return value < 0 && whole !== '0' ? `−${grouped}` : grouped;
}

/** Three digits that count: 0.237, 8.1, 23, 1.2k is not used here: 1 240. */
export function figure(value: Maybe): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 99.5) return count(value);
  if (size === 0) return '0';
  if (size < 0.001) return '<0.001';
  const digits = size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
  return trim(value.toFixed(digits)).replace('-', '−');
}

/** A number of a payload as it was sent: 21.25, and with fewer digits only if it has very many. */
export function asSent(value: Maybe): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const sent = String(value);
  return sent.length <= 12 ? sent.replace('-', '−') : figure(value);
}

/** Messages a second: whole numbers when there are many, else one decimal. */
export function rate(value: Maybe): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  if (value >= 99.5) return count(value);
  if (value > 0 && value < 0.05) return '<0.1';
  return trim(value.toFixed(1));
}

/** Short form for axes: 40k, 1.5M. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e9) return `${trim((value / 1e9).toFixed(1))}G`;
  if (size >= 1e6) return `${trim((value / 1e6).toFixed(1))}M`;
  if (size >= 1e4) return `${trim((value / 1e3).toFixed(1))}k`;
  if (size >= 1e3) return count(value);
  return trim(value.toFixed(size < 1 ? 2 : 1));
}

/** A share from 0 to 1 as "71 %"; small ones keep a decimal. */
export function percent(share: Maybe): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return NONE;
  const value = share * 100;
  if (value > 0 && value < 0.05) return `<0.1${THIN}%`;
  return `${trim(value.toFixed(value < 9.95 && value !== 0 ? 1 : 0))}${THIN}%`;
}

/** A value and its unit, which the page shows beside it in grey. */
export interface WithUnit {
  value: string;
  unit: string;
}

/** Milliseconds: 0.31 ms, 12 ms, 1.4 s. */
export function millis(ms: Maybe): WithUnit {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return { value: NONE, unit: 'ms' };
  if (ms >= 999.5) return { value: trim((ms / 1000).toFixed(ms < 9995 ? 1 : 0)), unit: 's' };
  if (ms >= 9.95) return { value: ms.toFixed(0), unit: 'ms' };
  if (ms >= 0.095) return { value: trim(ms.toFixed(1)), unit: 'ms' };
  return { value: trim((ms * 1000).toFixed(0)), unit: 'µs' };
}

// One rule for bytes: what is held in memory, and a single payload or packet, counts in KiB; what has passed or lies on
// a disk, and what passes each second, counts in kB.

/** Memory and payloads, in steps of 1,024. */
export function memory(bytes: Maybe): WithUnit {
  return scaled(bytes, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']);
}

/** Traffic and disks, in steps of 1,000. */
export function traffic(bytes: Maybe): WithUnit {
  return scaled(bytes, 1000, ['B', 'kB', 'MB', 'GB', 'TB']);
}

/** Traffic of a second. */
export function trafficRate(bytesPerSecond: Maybe): WithUnit {
  const { value, unit } = traffic(bytesPerSecond);
  return { value, unit: `${unit}/s` };
}

/** Value and unit as one text. */
export function joined(value: WithUnit): string {
  return value.value === NONE ? NONE : `${value.value}${THIN}${value.unit}`;
}

function scaled(bytes: Maybe, step: number, units: readonly [string, ...string[]]): WithUnit {
  if (bytes === null || bytes === undefined || !Number.isFinite(bytes))
    return { value: NONE, unit: units[0] };
  let value = bytes;
  let unit = units[0];
  for (const next of units.slice(1)) {
    if (value < step - 0.5) break;
    value /= step;
    unit = next;
  }
  const digits = unit === units[0] || value >= 99.5 ? 0 : value >= 9.95 ? 1 : 2;
  return { value: trim(value.toFixed(digits)), unit };
}

function trim(digits: string): string {
  return digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits;
}
