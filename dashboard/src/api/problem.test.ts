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
});
