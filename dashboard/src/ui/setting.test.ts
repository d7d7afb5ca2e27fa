import { expect, test } from 'vitest';
import { isSetting, withSettings } from './setting';

test('names of settings are told from other words with dots', () => {
  expect(isSetting('limits.client.queue')).toBe(true);
  expect(['thrum.toml', 'limits', 'limits.client.queue = 5', '10.0.0.1'].map(isSetting)).toEqual(
    Array(4).fill(false),
  );
});

test('a sentence of the broker is taken apart at the names of settings', () =>
  expect(withSettings('the queue is full (limits.client.queue); raise it')).toEqual([
    { text: 'the queue is full (', look: 'plain' },
    { text: 'limits.client.queue', look: 'code' },
    { text: '); raise it', look: 'plain' },
  ]));
