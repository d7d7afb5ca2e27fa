import { expect, test } from 'vitest';
import { isFilter, isTopic, matches } from './topicFilter';

test.each([
  ['a/b', 'a/b', true],
  ['a/b', 'a/b/c', false],
  ['a/b/c', 'a/b', false],
  ['a/+', 'a/b', true],
  ['a/+', 'a', false],
  ['+/+', '/b', true],
  ['a/#', 'a', true],
  ['a/#', 'a/b/c', true],
  ['#', 'a/b', true],
  ['#', '$SYS/x', false],
  ['$SYS/#', '$SYS/x', true],
])('%s and %s', (filter, topic, wanted) => expect(matches(filter, topic)).toBe(wanted));

test.each([
  ['a/+/#', true],
  ['', false],
  ['a/#/b', false],
  ['a+', false],
])('%s is a filter: %s', (text, wanted) => expect(isFilter(text)).toBe(wanted));

test('a topic has no wildcard and is not empty', () => {
  for (const topic of ['a', '/', 'site//a']) expect(isTopic(topic)).toBe(true);
  for (const text of ['', '+/temp', 'site/#', 'a\0']) expect(isTopic(text)).toBe(false);
});
