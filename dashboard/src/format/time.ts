// Times and spans as people read them; times are those of the reader's clock.
import { NONE, THIN } from './numbers';

/** The languages of the dashboard. */
export type Language = 'en' | 'zh';

const UNITS = {
  en: { ms: 'ms', s: 's', min: 'min', h: 'h', d: ['day', 'days'] },
  zh: { ms: '毫秒', s: '秒', min: '分', h: '小时', d: ['天', '天'] },
} as const;

/** Seconds as "2 min 9 s", "6 days". */
export function span(seconds: number | null | undefined, language: Language): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NONE;
  const unit = UNITS[language];
  const join = (value: number | string, name: string) => `${value}${THIN}${name}`;
  if (seconds < 0) return join(0, unit.s);
  if (seconds < 0.9995 && seconds > 0) return join(Math.round(seconds * 1000), unit.ms);
  if (seconds < 9.95) return join(Number(seconds.toFixed(1)), unit.s);
  const whole = Math.round(seconds);
  if (whole < 60) return join(whole, unit.s);
  const parts = (large: number, largeUnit: string, small: number, smallUnit: string) =>
    small === 0 ? join(large, largeUnit) : `${join(large, largeUnit)} ${join(small, smallUnit)}`;
  if (whole < 3600) return parts(Math.floor(whole / 60), unit.min, whole % 60, unit.s);
  const minutes = Math.round(whole / 60);
  if (minutes < 1440) return parts(Math.floor(minutes / 60), unit.h, minutes % 60, unit.min);
  const hours = Math.round(minutes / 60);
  const days = Math.floor(hours / 24);
  const day = unit.d[days === 1 ? 0 : 1];
  return days < 4 ? parts(days, day, hours % 24, unit.h) : join(days, day);
}

/** The age of something, short: "0.4 s", "3 min", "2 days". */
export function age(seconds: number | null | undefined, language: Language): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NONE;
  const unit = UNITS[language];
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)}${THIN}${unit.s}`;
  if (seconds < 60) return `${Math.floor(seconds)}${THIN}${unit.s}`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}${THIN}${unit.min}`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}${THIN}${unit.h}`;
  const days = Math.floor(seconds / 86400);
  return `${days}${THIN}${unit.d[days === 1 ? 0 : 1]}`;
}

/** "14:12:30". */
export function clock(time: number | Date): string {
  const date = new Date(time);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':');
}

/** "14:12". */
export function minute(time: number | Date): string {
  const date = new Date(time);
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** Seconds since a start as "2:13", "1:02:13". */
export function stopwatch(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NONE;
  const whole = Math.max(0, Math.round(seconds));
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}:${two(whole % 60)}`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)}`;
}

/** "Tue 24 Nov", in the reader's language. */
export function day(time: number | Date, language: Language): string {
  const form: Intl.DateTimeFormatOptions =
    language === 'zh'
      ? { month: 'long', day: 'numeric', weekday: 'short' }
      : { weekday: 'short', day: 'numeric', month: 'short' };
  return new Intl.DateTimeFormat(language === 'zh' ? 'zh-CN' : 'en-GB', form).format(time).replace(',', '');
}

/** "24 Nov, 14:12:30", with the year if it is another one. */
export function moment(time: number | Date, language: Language, now: number | Date): string {
  const date = new Date(time);
  const today = new Date(now);
  const sameDay = date.toDateString() === today.toDateString();
  if (sameDay) return clock(date);
  const year = date.getFullYear() === today.getFullYear() ? '' : ` ${date.getFullYear()}`;
  return `${day(date, language)}${year}, ${clock(date)}`;
}

/** Seconds between two times; null if one is not known. */
export function secondsSince(time: string | null | undefined, now: number): number | null {
  if (!time) return null;
  const at = Date.parse(time);
  return Number.isNaN(at) ? null : Math.max(0, (now - at) / 1000);
}

function two(value: number): string {
  return value.toString().padStart(2, '0');
}
