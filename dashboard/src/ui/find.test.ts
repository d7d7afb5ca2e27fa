import { expect, test } from 'vitest';
import { firstOf, namesTopic, rowAfter, settingsLike } from './find';

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
