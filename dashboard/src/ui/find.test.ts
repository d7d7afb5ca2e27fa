import { expect, test } from 'vitest';
import { againAfterMs, firstOf, namesTopic, rowAfter, settingsLike } from './find';

test('settings are found by their names first, then by what they do', () => {
  const settings = [
    { key: 'node.name', description: 'the queue of names' },
    { key: 'limits.client.queue', description: 'messages that wait' },
    { key: 'limits.topics', description: 'levels' },
  ];
  expect(settingsLike(settings, 'queue', 6).map((one) => one.key)).toEqual([
    'limits.client.queue',
    'node.name',
  ]);
  expect(settingsLike(settings, 'limits WAIT', 6).map((one) => one.key)).toEqual(['limits.client.queue']);
  expect(settingsLike(settings, '  ', 6)).toEqual([]);
});

test('a word that may be a topic is never opened without being chosen', () => {
  expect(namesTopic('device-17')).toBe(false);
  expect(namesTopic('site/a')).toBe(true);
  expect(firstOf([{ guess: true }])).toBe(-1);
  expect(firstOf([{ guess: true }, {}])).toBe(1);
  expect(firstOf([{}, { guess: true }])).toBe(0);
});

test('arrows choose the first row when none is chosen, and stay within the rows', () => {
  expect(rowAfter(-1, 'ArrowDown', 2)).toBe(0);
  expect(rowAfter(1, 'ArrowDown', 2)).toBe(1);
  expect(rowAfter(0, 'ArrowUp', 2)).toBe(0);
  expect(rowAfter(-1, 'ArrowUp', 2)).toBe(0);
  expect(rowAfter(-1, 'ArrowDown', 0)).toBe(-1);
});

test('topics are asked for again if their observation had only begun', () => {
  const since = '2026-11-27T12:00:00.250Z';
  const at = Date.parse(since);
  expect(againAfterMs(since, at + 20)).toBe(1000);
  // The page knows the time of the broker to a second: it may be before.
  expect(againAfterMs(since, at - 900)).toBe(1000);
  expect(againAfterMs(since, at + 2000)).toBeNull();
  expect(againAfterMs('', at)).toBeNull();
});
