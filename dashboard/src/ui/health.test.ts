import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { figures } from '../api/figures.svelte';
import { session } from '../api/session.svelte';
import { health } from './health.svelte';

let asked: string[] = [];
/** Messages that wait for clients that are away: one more each time. */
let waiting = 0;
let end = () => {};

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('document', { hidden: false });
  vi.spyOn(session, 'can').mockReturnValue(true);
  vi.stubGlobal('fetch', (url: string | Request) => {
    const address = typeof url === 'string' ? url : url.url;
    asked.push(address);
    const facets = { problems: [], subscriptions: 1, queued: { messages: waiting } };
    const answer = address.includes('/alarms') ? { alarms: [] } : facets;
    return Promise.resolve(new Response(address.includes('metrics') ? '' : JSON.stringify(answer)));
  });
  asked = [];
  // Messages come in for more than a minute, and none goes out.
  for (let second = 1; second <= 90; second += 1)
    figures.series.push(second * 1000, {
      messages_in: 10,
      messages_out: second < 10 ? 10 : 0,
      drops: 0,
      publishes_refused: 0,
    });
});
afterEach(() => {
  end();
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const facets = () => asked.filter((address) => address.includes('/clients/facets')).length;

test('receivers are asked in steps of the same length, whatever asks for the alarms meanwhile', async () => {
  waiting = 5;
  end = health.start();
  await vi.advanceTimersByTimeAsync(9000);
  waiting = 7;
  expect(facets()).toBe(2);
  await health.load();
  expect(facets()).toBe(2);
  expect(health.silence).toBeNull();
  await vi.advanceTimersByTimeAsync(1500);
  expect(facets()).toBe(4);
  expect(health.silence?.why).toBe('away');
});
