import { afterEach, expect, test, vi } from 'vitest';
import { askGone, goneOf } from './gone';

const event = (name: string, second: number) => ({
  event: name,
  last_at: new Date(second * 1000).toISOString(),
});

afterEach(() => vi.unstubAllGlobals());

test('a client that is gone is told by the end of its connection', () => {
  const events = [event('connected', 1), event('disconnected', 2), event('refused', 3)];
  expect(goneOf({ client_id: 'device-17', events })).toEqual({
    clientId: 'device-17',
    how: 'disconnected',
    atMs: 2000,
  });
});

test('one that never came in is told by its last refusal', () => {
  const events = [event('refused', 1), event('refused', 4), event('slowed', 5)];
  expect(goneOf({ client_id: 'a', events })).toMatchObject({ how: 'refused', atMs: 4000 });
  expect(goneOf({ client_id: 'a', events: [event('subscribed', 7)] })).toMatchObject({ how: 'seen' });
  expect(goneOf({ client_id: 'a', events: [] })).toBeNull();
});

test('the broker is asked for exactly this identifier, and one that it does not know is no error', async () => {
  const asked: string[] = [];
  vi.stubGlobal('fetch', (url: string) => {
    asked.push(url);
    const known = url.includes('device-17');
    const body = known ? { client_id: 'device-17', events: [event('disconnected', 2)], forgotten: 0 } : {};
    return Promise.resolve(new Response(JSON.stringify(body), { status: known ? 200 : 404 }));
  });
  const { signal } = new AbortController();
  expect(await askGone('device-17', signal)).toMatchObject({ clientId: 'device-17' });
  expect(await askGone('nobody/at all', signal)).toBeNull();
  expect(await askGone('', signal)).toBeNull();
  expect(asked).toEqual(['api/v1/clients/device-17/timeline', 'api/v1/clients/nobody%2Fat%20all/timeline']);
});
