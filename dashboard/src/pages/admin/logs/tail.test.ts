import { describe, expect, test } from 'vitest';
import { type Row, added, lineRow, placeOf, printed } from './tail';

const line = (number: number, fields: Record<string, string> = {}) => ({
  number,
  at: '2026-11-27T06:26:48.747Z',
  level: 'info',
  target: 'thrum_broker::edge',
  text: 'client connected',
  fields,
});
const numbers = (rows: readonly Row[]) =>
  rows.map((row) => (row.kind === 'line' ? row.line.number : `missed ${row.events}`));

describe('the tail of the log', () => {
  test('the newest line is first', () =>
    expect(numbers(added([lineRow(line(1))], [lineRow(line(2)), lineRow(line(3))]).rows)).toEqual([3, 2, 1]));
  test('what was missed keeps its place', () =>
    expect(
      numbers(added([lineRow(line(1))], [{ kind: 'missed', key: 'm', events: 7 }, lineRow(line(9))]).rows),
    ).toEqual([9, 'missed 7', 1]));
  test('lines beyond the limit are forgotten and counted', () => {
    const found = added([lineRow(line(2)), lineRow(line(1))], [lineRow(line(3))], 2);
    expect(numbers(found.rows)).toEqual([3, 2]);
    expect(found.forgotten).toBe(1);
  });
});

test('a line is printed as the broker prints it', () =>
  expect(printed(line(1, { reason: 'the client sent DISCONNECT', client_id: 'a' }))).toBe(
    '2026-11-27T06:26:48.747Z  INFO thrum_broker::edge: client connected client_id=a reason="the client sent DISCONNECT"',
  ));

test('a field leads to what it names', () => {
  expect(placeOf('client_id', 'a/b')).toEqual(['clients', 'a/b']);
  expect(placeOf('topic', 'a/b')).toEqual(['topics', 'a', 'b']);
  expect(placeOf('peer', '::1')).toBeNull();
});
