// Every key of the broker has a text in Chinese. The guide has a table of keys, which a test of the broker keeps.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { KEYS } from './keysZh';
import { textOf, wordsOf } from './wordsZh';

/** The keys of the tables between the marks of the guide. */
function keysOfGuide(): string[] {
  const path = new URL('../../../../../docs/guide/configuration.md', import.meta.url);
  const guide = readFileSync(path, 'utf8');
  const made = guide.slice(guide.indexOf('<!-- keys: begin'), guide.indexOf('<!-- keys: end'));
  const keys: string[] = [];
  let table = '';
  for (const line of made.split('\n')) {
    table = /^### \[(.+)\]$/.exec(line)?.[1] ?? table;
    const key = /^\| `([a-z0-9_]+)` \|/.exec(line)?.[1];
    if (key !== undefined) keys.push(`${table}.${key}`);
  }
  return keys;
}

describe('settings in Chinese', () => {
  test('every key of the guide has a text', () => {
    const keys = keysOfGuide();
    expect(keys.length).toBeGreaterThan(150);
    expect(keys.filter((key) => textOf(key) === null)).toEqual([]);
  });

  test('no text is English', () => {
    const english = Object.entries(KEYS).filter(([, text]) => !/[\u4e00-\u9fff]/.test(text));
    expect(english).toEqual([]);
  });

  test('a table with a name of its own is told as any of its kind', () =>
    expect(textOf('listeners.office.bind')).toBe(KEYS['listeners.*.bind']));

  test('a default is told with its reason, and a key that is not known not at all', () => {
    const words = wordsOf({
      key: 'limits.client.queue',
      default: 10000,
      expected: 'a whole number from 1 to 9',
    });
    expect(words?.why).toBe('`10_000`：每秒一条消息时约三小时');
    expect(words?.expected).toBe('1 到 9 的整数');
    expect(wordsOf({ key: 'limits.none', default: 0, expected: '' })).toBeNull();
  });

  test('what values there are is told of every form', () => {
    const told = (expected: string) =>
      wordsOf({ key: 'listeners.a.bind', default: null, expected })?.expected;
    for (const expected of [
      'a duration such as "10s", "1h30m", "7d" or a number of seconds',
      'a size such as "64KiB", "1MB" or a number of bytes',
      'a rate such as "1000/s", "10/m", "100/s burst 500", or 0 for no limit',
      '"inherit", "loopback", true or false',
      'one of "none", "optional", "required"',
    ])
      expect(told(expected)).toMatch(/[\u4e00-\u9fff]/);
    expect(told('something new')).toBe('something new');
  });
});
