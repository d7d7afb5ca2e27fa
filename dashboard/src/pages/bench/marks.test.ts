import { afterEach, expect, test } from 'vitest';
import type { RunMark, Sample } from '../../api/bench';
import { locale } from '../../i18n/index.svelte';
import { isPaused, markText, marksOf } from './marks';

afterEach(() => {
  locale.language = 'en';
});

const mark = (kind: string, text = kind, value: number | null = null): RunMark => ({
  at_secs: 1,
  kind,
  text,
  value,
});
const samples = (...marks: RunMark[][]) => marks.map((of) => ({ marks: of })) as unknown as Sample[];

test('the last pause counts, and a note that says so is none', () => {
  expect(isPaused([])).toBe(false);
  expect(isPaused(samples([mark('paused')], [], [mark('note', 'resumed')]))).toBe(true);
  expect(isPaused(samples([mark('paused')], [mark('resumed'), mark('paused'), mark('resumed')]))).toBe(false);
  expect(isPaused(samples([mark('note', 'paused')]))).toBe(false);
});

test('what the program says is translated, what people wrote stays', async () => {
  const rate = mark('rate', 'rate 110\u202f% of the planned one', 1.1);
  expect(markText(rate)).toBe('rate 110\u202f% of the planned one');
  expect(markText(mark('extended', '', 60))).toBe('hold extended by 1:00');
  expect(markText(mark('not_changed', '', 60))).toContain('not extended');
  locale.language = 'zh';
  markText(rate);
  await expect.poll(() => markText(mark('paused'))).toBe('已暂停');
  expect(markText(rate)).toBe('速率为计划的 110\u202f%');
  expect(markText(mark('note', 'paused'))).toBe('paused');
});

test('marks keep their order and times, and a chart has short words', () => {
  const long = 'x'.repeat(30);
  const found = marksOf(samples([mark('rate', '', 1.1)], [mark('other', long)]));
  expect(found.map(({ text }) => text)).toEqual(['rate 110\u202f% of the planned one', long]);
  expect(found.map(({ word }) => word)).toEqual(['rate 110\u202f%', `${'x'.repeat(23)}…`]);
});
