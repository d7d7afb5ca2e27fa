import { afterEach, expect, test, vi } from 'vitest';
import { noAnswer } from '../api/problem';
import { locale } from '../i18n/index.svelte';
import { toasts } from './toasts.svelte';

afterEach(() => {
  locale.language = 'en';
});

test('an error is told in Chinese, also if its texts come after it', async () => {
  locale.language = 'zh';
  toasts.failed(noAnswer());
  const [toast] = toasts.shown;
  await vi.waitFor(() => expect(toast?.words.title).toBe('服务器没有应答'));
  expect(toast?.words.text).toContain('页面会重试');
});
