import { describe, expect, test } from 'vitest';
import {
  asSent,
  count,
  figure,
  joined,
  memory,
  millis,
  percent,
  rate,
  short,
  traffic,
  trafficRate,
} from './numbers';

const plain = (text: string) => text.replaceAll('\u202f', ' ');

describe('numbers', () => {
  test.each([
    [0, '0'],
    [999, '999'],
    [12_431, '12 431'],
    [1_004_218, '1 004 218'],
    [-1200, '−1 200'],
    [null, '–'],
    [Number.NaN, '–'],
  ])('count %s is "%s"', (value, text) => expect(plain(count(value))).toBe(text));

  test.each([
    [0.2372, '0.237'],
    [8.1, '8.1'],
    [23.04, '23'],
    [1240, '1 240'],
    [0, '0'],
    [0.0002, '<0.001'],
  ])('figure %s is "%s"', (value, text) => expect(plain(figure(value))).toBe(text));

  test.each([
    [47.94, '47.9'],
    [0.01, '<0.1'],
    [41_020.4, '41 020'],
    [null, '–'],
  ])('rate %s is "%s"', (value, text) => expect(plain(rate(value))).toBe(text));

  test.each([
    [150, '150'],
    [1500, '1 500'],
    [40_000, '40k'],
    [1_500_000, '1.5M'],
  ])('an axis shows %s as "%s"', (value, text) => expect(plain(short(value))).toBe(text));

  test.each([
    [1, '100 %'],
    [0.71, '71 %'],
    [0.025, '2.5 %'],
    [0.0001, '<0.1 %'],
    [0, '0 %'],
  ])('percent %s is "%s"', (value, text) => expect(plain(percent(value))).toBe(text));

  test.each([
    [0.012, '12 µs'],
    [0.31, '0.3 ms'],
    [12.4, '12 ms'],
    [1400, '1.4 s'],
    [null, '–'],
  ])('millis %s is "%s"', (value, text) => expect(plain(joined(millis(value)))).toBe(text));

  test('memory counts in 1,024 and traffic in 1,000', () => {
    expect(plain(joined(memory(2048)))).toBe('2 KiB');
    expect(plain(joined(memory(1024 * 1024 * 108)))).toBe('108 MiB');
    expect(plain(joined(traffic(1940)))).toBe('1.94 kB');
    expect(plain(joined(traffic(9_400_000)))).toBe('9.4 MB');
    expect(plain(joined(trafficRate(9_400_000)))).toBe('9.4 MB/s');
    expect(joined(trafficRate(null))).toBe('–');
  });
});

test('a number of a payload is shown as it was sent', () => {
  expect([21.25, -0.5, 1e21, 3].map(asSent)).toEqual(['21.25', '−0.5', '1e+21', '3']);
  expect(asSent(1 / 3)).toBe('0.333');
});
