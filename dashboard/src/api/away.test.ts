import { afterEach, expect, test, vi } from 'vitest';
import { awayOf } from './away';

afterEach(() => vi.unstubAllGlobals());

test('clients without a connection are away, and those that are not known are not', async () => {
  vi.stubGlobal('fetch', (url: string) =>
    Promise.resolve(
      url.endsWith('/nobody')
        ? new Response('{}', { status: 404 })
        : new Response(JSON.stringify({ connected: url.endsWith('/scada') })),
    ),
  );
  expect([...(await awayOf(['archive', 'scada', 'nobody']))]).toEqual(['archive']);
});
