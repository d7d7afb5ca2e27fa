import { describe, expect, test } from 'vitest';
import { emptyRows, merged } from '../../api/rows';
import { type Level, type Topic, above, below, limitFor, rowsOf } from './tree';

const topic = (path: string, children = 0): Topic => ({
  name: path.split('/').at(-1) ?? '',
  topic: path,
  children,
  messages: 1,
  payload_bytes: 0,
  messages_per_second: 1,
  bytes_per_second: 0,
  last_at: null,
  value: null,
});
const level = (rows: Topic[], more = false): Level => ({
  list: merged(emptyRows<Topic>(), { whole: true, rows }, (row) => row.name),
  more,
  others: 0,
});

describe('the tree', () => {
  const levels = new Map([
    ['', level([topic('site', 2), topic('hello')])],
    ['site/', level([topic('site/a', 1), topic('site/b')], true)],
  ]);
  const shown = (open: string[], text = '') => rowsOf(levels, new Set(open), text).map((row) => row.key);

  test('shows the top', () => expect(shown([''])).toEqual(['site', 'hello']));
  test('shows what is open below its level', () =>
    expect(shown(['', 'site/'])).toEqual(['site', 'site/a', 'site/b', 'more site/', 'hello']));
  test('waits for a level that has not come', () =>
    expect(shown(['', 'site/', 'site/a/'])).toContain('wait site/a/'));
  test('a text leaves out other names', () => expect(shown([''], 'HELL')).toEqual(['hello']));
  test('knows the levels above a topic', () => {
    expect(above('a/b/c')).toEqual(['a/', 'a/b/']);
    expect(above('a')).toEqual([]);
    expect(above('/a')).toEqual(['/']);
    expect(below('a')).toBe('a/');
  });
  test('asks for 400 rows in all', () => {
    expect(limitFor(1)).toBe(100);
    expect(limitFor(8)).toBe(50);
    expect(limitFor(16)).toBe(25);
  });
});
