import { describe, expect, test } from 'vitest';
import { age, moment, secondsSince, span, stopwatch } from './time';

const plain = (text: string) => text.replaceAll('\u202f', ' ');

describe('spans', () => {
  test.each([
    [0.25, '250 ms'],
    [1.5, '1.5 s'],
    [59.6, '1 min'],
    [129, '2 min 9 s'],
    [39_480, '10 h 58 min'],
    [86_400, '1 day'],
    [90_000, '1 day 1 h'],
    [6 * 86_400, '6 days'],
    [null, '–'],
  ])('%s seconds are "%s"', (seconds, text) => expect(plain(span(seconds, 'en'))).toBe(text));

  test('a span in Chinese has Chinese units', () => expect(plain(span(129, 'zh'))).toBe('2 分 9 秒'));

  test.each([
    [0.04, '0.0 s'],
    [12.9, '12 s'],
    [200, '3 min'],
    [7300, '2 h'],
    [172_900, '2 days'],
  ])('the age of %s seconds is "%s"', (seconds, text) => expect(plain(age(seconds, 'en'))).toBe(text));
});

describe('moments', () => {
  const now = new Date(2026, 10, 27, 14, 12, 30);
  test('today has a clock only', () =>
    expect(moment(new Date(2026, 10, 27, 9, 5, 1), 'en', now)).toBe('09:05:01'));
  test('another day has its name', () =>
    expect(moment(new Date(2026, 10, 24, 9, 5, 1), 'en', now)).toBe('Tue 24 Nov, 09:05:01'));
  test('another year is named', () =>
    expect(moment(new Date(2025, 10, 24, 9, 5, 1), 'en', now)).toContain('2025'));
  test('what is in the future is zero seconds ago', () =>
    expect(secondsSince('2026-11-27T14:00:10Z', Date.parse('2026-11-27T14:00:00Z'))).toBe(0));
  test('an unknown time has no age', () => expect(secondsSince('soon', 0)).toBeNull());
});

describe('seconds since a start', () => {
  test.each([
    [0, '0:00'],
    [133.4, '2:13'],
    [3733, '1:02:13'],
    [null, '–'],
  ])('%s are "%s"', (seconds, text) => expect(stopwatch(seconds)).toBe(text));
});
