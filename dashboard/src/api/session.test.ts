import { expect, test } from 'vitest';
import { session } from './session.svelte';

const who = (name: string, scopes: string[]) => ({
  name,
  scopes,
  means: 'session',
  oidc: false,
  set_up: true,
  session: null,
  token: null,
});

test('what one person typed is forgotten when nobody or somebody else is signed in', () => {
  let forgotten = 0;
  session.whenPersonChanges(() => (forgotten += 1));
  const after = (name: string, scopes: string[]) => {
    session.take(who(name, scopes));
    return forgotten;
  };
  expect(after('ann', ['admin'])).toBe(1);
  expect(after('ann', ['clients:read'])).toBe(1);
  expect(after('bob', ['admin'])).toBe(2);
  expect(after('anonymous', [])).toBe(3);
  expect(after('anonymous', [])).toBe(3);
  expect(after('ann', ['admin'])).toBe(4);
});
