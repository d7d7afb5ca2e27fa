import { afterEach, describe, expect, test, vi } from 'vitest';
import { locale } from '../i18n/index.svelte';
import { Problem, noAnswer } from './problem';

afterEach(() => {
  locale.language = 'en';
});

const unknown = () => new Problem({ title: 'new kind', status: 400, detail: 'a is b', remedy: 'try c' });

describe('a problem', () => {
  test('is told in English', () => {
    const problem = noAnswer();
    expect(`${problem.heading}: ${problem.whole} ${problem.remedy}`).toBe(
      'No answer: The broker does not answer. check that it runs and that the network reaches it; this page tries again',
    );
  });
  test('is told in Chinese as soon as the texts have come, and as the broker wrote it if it is not known', async () => {
    locale.language = 'zh';
    await vi.waitFor(() => expect(noAnswer().heading).toBe('没有应答'));
    expect(noAnswer().whole).toBe('服务器没有应答。');
    expect(noAnswer().detail).toBe('the broker does not answer');
    expect(unknown().whole).toBe('a is b.');
    const gone = new Problem({
      title: 'x',
      status: 404,
      detail: 'the topic "a" has no retained message',
      remedy: 'y',
    });
    expect(gone.sentence).toBe('主题 "a" 没有保留消息');
  });
  test.each([
    [
      'all stages would last 700 s; management.benchmarks.duration allows 600 s',
      '所有阶段将持续 700 秒；management.benchmarks.duration 允许 600 秒',
    ],
    ['the run has been changed 1000 times', '此测试已更改 1000 次'],
    ['16 changes before it are not taken yet', '之前的 16 个更改还没有被接收'],
  ])('of a run that is not changed is told in Chinese: %s', async (detail, words) => {
    locale.language = 'zh';
    await vi.waitFor(() => expect(noAnswer().heading).toBe('没有应答'));
    const remedy = 'extend it by less, or wait for its end and start another one';
    const problem = new Problem({ title: 'the run is not changed', status: 409, detail, remedy });
    expect(problem.heading).toBe('测试没有更改');
    expect(problem.sentence).toBe(words);
    expect(problem.remedy).toBe('延长得少一些，或等它结束后再开始一个测试');
  });
});
