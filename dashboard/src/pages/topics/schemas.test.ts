import { expect, test } from 'vitest';
import { parsed, schemaOf } from './schemas.svelte';

const kept = (filter: string, message = filter) => ({ filter, message, text: 'message A {}' });

test('the nearest filter gives the schema, of equal ones the newest', () => {
  const all = [kept('#'), kept('site/+/temp', 'old'), kept('site/a/+', 'new'), kept('site/a/#')];
  expect(schemaOf(all, 'site/a/temp')?.message).toBe('new');
  expect(schemaOf(all, 'site/b/temp')?.message).toBe('old');
  expect(schemaOf(all, 'site/a/x/y')?.message).toBe('site/a/#');
  expect(schemaOf(all, 'other')?.message).toBe('#');
  expect(schemaOf([kept('a')], 'b')).toBeNull();
});

test('what the browser kept is not trusted', () => {
  expect(parsed(null)).toEqual([]);
  expect(parsed('{')).toEqual([]);
  expect(parsed('{"a":1}')).toEqual([]);
  expect(parsed(JSON.stringify([kept('a'), { filter: 'b' }, 7, kept('a/#/b')]))).toEqual([kept('a')]);
});
