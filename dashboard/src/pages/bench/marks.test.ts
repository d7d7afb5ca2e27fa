import { afterEach, expect, test } from 'vitest';
import type { Sample } from '../../api/bench';
import { locale } from '../../i18n/index.svelte';
import { isPaused, markText, marksOf } from './marks';

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
  const long = 'x'.repeat(30);
  const found = marksOf(samples(['rate 110 % of the planned one'], [long]));
  expect(found.map(({ atSecs, text }) => [atSecs, text])).toEqual([
    [0, 'rate 110 % of the planned one'],
    [1, long],
  ]);
  expect(found.map(({ word }) => word)).toEqual(['rate 110 %', `${'x'.repeat(23)}…`]);
});
