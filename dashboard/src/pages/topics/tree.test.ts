import { describe, expect, test } from 'vitest';
import { emptyRows, merged } from '../../api/rows';
import { sparkLine } from '../../charts/spark';
import { Rates } from './rates';
import { type Level, type Topic, above, below, focusAfter, limitFor, linkAfter, meant, rowsOf } from './tree';

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
  const shown = (open: string[]) => rowsOf(levels, new Set(open)).map((row) => row.key);

  test('shows the top', () => expect(shown([''])).toEqual(['site', 'hello']));
  test('shows what is open below its level', () =>
    expect(shown(['', 'site/'])).toEqual(['site', 'site/a', 'site/b', '\0more site/', 'hello']));
  test('waits for a level that has not come', () =>
    expect(shown(['', 'site/', 'site/a/'])).toContain('\0wait site/a/'));
  test('has a key for each row, whatever topics are called', () => {
    const odd = new Map([['', level([topic('more ', 0), topic('wait a/', 0), topic('a', 1)], true)]]);
    const keys = rowsOf(odd, new Set(['', 'a/'])).map((row) => row.key);
    expect(new Set(keys).size).toBe(5);
  });
  test('Enter opens the topic of that name, else the first that was found, else what is typed', () => {
    const found = [topic('site/b'), topic('site/b/c'), topic('site/hello')];
    expect(meant(found, 'site/b/c')).toBe('site/b/c');
    expect(meant(found, 'HELL')).toBe('site/b');
    expect(meant(found, 'a/b/c')).toBe('a/b/c');
    expect(meant(found, 'site/+/c')).toBe('site/b');
    expect(meant([], '+/c')).toBe('+/c');
    expect(meant([], 'nowhere')).toBe('nowhere');
  });
  test('arrows lead from the field into what was found, and back', () => {
    expect(linkAfter(-1, 'ArrowDown', 3)).toBe(0);
    expect(linkAfter(2, 'ArrowDown', 3)).toBe(2);
    expect(linkAfter(0, 'ArrowUp', 3)).toBe(-1);
    expect(linkAfter(0, 'End', 3)).toBe(2);
    expect(linkAfter(2, 'Home', 3)).toBe(0);
    expect(linkAfter(0, 'Enter', 3)).toBeNull();
  });
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
  test('is walked with keys: over what is no topic, to the parent, into what is open, to both ends', () => {
    const rows = rowsOf(levels, new Set(['', 'site/']));
    const key = (from: string, pressed: string) => {
      const to = focusAfter(
        rows,
        rows.findIndex((row) => row.key === from),
        pressed,
      );
      return to === null ? null : rows[to]?.key;
    };
    expect(key('site', 'ArrowDown')).toBe('site/a');
    expect(key('site', 'ArrowRight')).toBe('site/a');
    expect(key('site/b', 'ArrowDown')).toBe('hello');
    expect(key('hello', 'ArrowUp')).toBe('site/b');
    expect(key('site/b', 'ArrowLeft')).toBe('site');
    expect(key('hello', 'ArrowRight')).toBeNull();
    expect(key('site/a', 'Home')).toBe('site');
    expect(key('site/a', 'End')).toBe('hello');
    expect(key('hello', 'ArrowDown')).toBeNull();
    expect(key('hello', 'x')).toBeNull();
  });
});

describe('rates of rows', () => {
  const row = (key: string, rate: number) => ({
    kind: 'topic' as const,
    key,
    depth: 0,
    open: false,
    topic: { ...topic(key), messages_per_second: rate },
  });
  test('make a line from the left to the right, the largest one at the top', () => {
    expect(sparkLine([])).toBe('');
    expect(sparkLine([0, 0])).toBe('M0 99H300');
    expect(sparkLine([0, 5, 10])).toBe('M0 100L150 53L300 6');
  });
  test('are those of the last minute', () => {
    const rates = new Rates();
    for (let second = 0; second < 61; second += 1) rates.push([row('a', second === 0 ? 1000 : 1)]);
    expect(rates.line('a')).toMatch(/^M0 6L5 6L/);
    expect(rates.line('a').split('L')).toHaveLength(60);
  });
  test('are forgotten with their row', () => {
    const rates = new Rates();
    rates.push([row('a', 1), row('b', 1)]);
    rates.push([row('b', 1)]);
    rates.push([row('a', 2), row('b', 1)]);
    expect(rates.line('a')).toBe('M0 6');
    expect(rates.line('b').split('L')).toHaveLength(3);
  });
});
