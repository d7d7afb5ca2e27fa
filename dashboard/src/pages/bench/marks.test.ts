import { afterEach, expect, test } from 'vitest';
import type { Sample } from '../../api/bench';
import { locale } from '../../i18n/index.svelte';
import { isPaused, markText, marksOf, word } from './marks';

afterEach(() => {
  locale.language = 'en';
});

const samples = (...texts: string[][]) =>
  texts.map((marks, index) => ({
    marks: marks.map((text) => ({ at_secs: index, text })),
  })) as unknown as Sample[];

test('the last pause counts', () => {
  expect(isPaused([])).toBe(false);
  expect(isPaused(samples(['paused'], [], ['a note']))).toBe(true);
  expect(isPaused(samples(['paused'], ['resumed', 'paused', 'resumed']))).toBe(false);
});

test('what the program says is translated, what people wrote stays', async () => {
  locale.language = 'zh';
  markText({ text: 'paused' });
  await expect.poll(() => markText({ text: 'paused' })).toBe('已暂停');
  expect(markText({ text: 'rate 110 % of the planned one' })).toBe('速率为计划的 110 %');
  expect(markText({ text: 'I paused the fan' })).toBe('I paused the fan');
});

test('marks keep their order and times, and a chart has short words', () => {
  expect(marksOf(samples(['one'], ['two']))).toEqual([
    { atSecs: 0, text: 'one' },
    { atSecs: 1, text: 'two' },
  ]);
  expect(word('x'.repeat(30))).toHaveLength(24);
  expect(word('short')).toBe('short');
});
