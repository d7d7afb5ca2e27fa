import { expect, test } from 'vitest';
import { indented, isStream, read } from './answer';

test('JSON is indented, also that of a problem', async () => {
  const response = new Response('{"a":1}', {
    status: 404,
    headers: { 'content-type': 'application/problem+json' },
  });
  expect(await read(response, 0, false)).toMatchObject({
    status: 404,
    shown: '{\n  "a": 1\n}',
    bytes: 7,
    cut: null,
  });
});
test('what is no JSON stays', () => expect(indented('{', 'application/json')).toBe('{'));
test('a large body is cut', async () => {
  const response = new Response('x'.repeat(400_000), { headers: { 'content-type': 'text/plain' } });
  expect((await read(response, 0, false)).cut).toBe('size');
});
test('a file is not read into the page', async () => {
  const response = new Response('tar', { headers: { 'content-type': 'application/x-tar' } });
  expect(await read(response, 0, false)).toMatchObject({ cut: 'file', shown: '' });
});
test('only what always is a stream is read for a time', () => {
  expect(isStream(['text/event-stream'])).toBe(true);
  expect(isStream(['application/json', 'text/event-stream'])).toBe(false);
});
