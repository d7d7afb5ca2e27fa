import { describe, expect, test } from 'vitest';
import { href, parsePlace } from './router.svelte';

describe('addresses', () => {
  test('the top is home', () => expect(parsePlace('').path).toEqual([]));
  test('a client with any name comes back', () => {
    const id = 'a/b?c#d e%2F';
    expect(parsePlace(href(['clients', id])).path).toEqual(['clients', id]);
  });
  test('a topic with empty levels comes back', () => {
    for (const topic of ['/a', 'a//b', 'a/', '/', '//']) {
      const path = ['topics', ...topic.split('/')];
      expect(parsePlace(href(path)).path).toEqual(path);
    }
    expect(parsePlace('#/clients/').path).toEqual(['clients']);
  });
  test('parameters come back', () =>
    expect(parsePlace(href(['clients'], { filter: 'queue>1 user="a b"' })).query.get('filter')).toBe(
      'queue>1 user="a b"',
    ));
  test('empty parameters are left out', () =>
    expect(href(['why'], { client: '', topic: null })).toBe('#/why'));
  test('a broken escape is taken as it is', () =>
    expect(parsePlace('#/topics/%zz').path).toEqual(['topics', '%zz']));
});
