import { afterEach, describe, expect, test, vi } from 'vitest';
import { address, send } from './client';
import { streamAddress } from './live.svelte';
import { asProblem, problemOf, readProblem } from './problem';
import { permits } from './session.svelte';

describe('addresses of the interface', () => {
  test('are relative, so that any path may be in front', () =>
    expect(address('/status')).toBe('api/v1/status'));
  test('a name in the path is encoded', () =>
    expect(address('/clients/{id}', { id: 'a/b c' })).toBe('api/v1/clients/a%2Fb%20c'));
  test('a client may be called as a route', () =>
    expect(address('/clients/{id}', { id: 'facets' })).toBe('api/v1/clients/%66acets'));
  test('empty parameters are left out, lists are repeated', () =>
    expect(address('/x', {}, { a: '', b: undefined, c: ['1', '2'], d: false })).toBe(
      'api/v1/x?c=1&c=2&d=false',
    ));
  test('the top of the topics is an empty parameter of the stream', () =>
    expect(streamAddress({ topics: ['', 'a/'] })).toBe('api/v1/stream?topics=&topics=a%2F'));
});

describe('a name that means a folder', () => {
  afterEach(() => vi.unstubAllGlobals());
  test('is not sent, because the browser would ask for another route', async () => {
    const asked: string[] = [];
    vi.stubGlobal('fetch', (url: string) => {
      asked.push(url);
      return Promise.resolve(new Response('{}'));
    });
    for (const id of ['.', '..'])
      await expect(send('delete', address('/login/sessions/{id}', { id }), undefined)).rejects.toThrow(
        'cannot ask',
      );
    expect(asked).toEqual([]);
    for (const id of ['...', '..a', '%2e', '../..'])
      await send('get', address('/clients/{id}', { id }, { filter: '../x' }), undefined);
    expect(asked.map((url) => new URL(url, 'http://a/b/').pathname)).toEqual([
      '/b/api/v1/clients/...',
      '/b/api/v1/clients/..a',
      '/b/api/v1/clients/%252e',
      '/b/api/v1/clients/..%2F..',
    ]);
  });
});

describe('problems', () => {
  test('of the broker are shown as they are', async () => {
    const body = JSON.stringify({
      title: 'invalid',
      status: 400,
      detail: 'd',
      remedy: 'r',
      retry_after_secs: 3,
    });
    const problem = await problemOf(new Response(body, { status: 400 }));
    expect([problem.title, problem.detail, problem.remedy, problem.retryAfterSeconds]).toEqual([
      'invalid',
      'd',
      'r',
      3,
    ]);
  });
  test('of a proxy have a reason, too', async () =>
    expect((await problemOf(new Response('<html>', { status: 502 }))).detail).toContain('502'));
  test('a body that is no problem is none', () => expect(readProblem('{"title":1}')).toBeNull());
  test('errors of the page become problems', () => expect(asProblem(new Error('x')).detail).toBe('x'));
});

describe('scopes', () => {
  test('admin permits everything', () => expect(permits(['admin'], 'clients:write')).toBe(true));
  test('a scope permits itself only', () => {
    expect(permits(['clients:read'], 'clients:read')).toBe(true);
    expect(permits(['clients:read'], 'clients:write')).toBe(false);
  });
});
