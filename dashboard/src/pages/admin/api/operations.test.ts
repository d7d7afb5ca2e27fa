import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { filled, groupsOf, isRead, matching } from './operations';

const document: unknown = JSON.parse(
  readFileSync(new URL('../../../../../docs/api/openapi.json', import.meta.url), 'utf8'),
);
const groups = groupsOf(document);
const all = groups.flatMap((group) => group.operations);
const named = (id: string) => {
  const found = all.find((one) => one.id === id);
  if (!found) throw new Error(id);
  return found;
};

describe('the operations of the real document', () => {
  test('each has a name of its own, a group and a summary', () => {
    expect(new Set(all.map((one) => one.id)).size).toBe(all.length);
    expect(all.filter((one) => one.group === '' || one.summary === '')).toEqual([]);
  });
  test('a form has the parameters with their kinds', () => {
    const kinds = Object.fromEntries(named('list_clients').parameters.map((one) => [one.name, one.kind]));
    expect(kinds).toMatchObject({ filter: 'text', descending: 'boolean', limit: 'integer' });
    expect(named('kick_client').parameters[0]).toMatchObject({ name: 'id', in: 'path', required: true });
  });
  test('a body begins with what it needs', () => {
    const { body } = named('publish_message');
    expect(JSON.parse(body?.example ?? '')).toHaveProperty('topic');
    expect(body?.fields.map((field) => field.name)).toContain('retain');
  });
  test('every example of JSON can be read', () => {
    for (const one of all)
      if (one.body?.type === 'application/json')
        expect(() => JSON.parse(one.body?.example ?? '') as unknown, one.id).not.toThrow();
  });
  test('what needs no login is known', () => {
    expect(named('show_caller').scopes).toBeNull();
    expect(named('list_clients').scopes).toEqual(['clients:read']);
  });
});

describe('what asks first', () => {
  test.each(['kick_client', 'publish_message', 'apply_configuration', 'make_backup', 'log_in', 'add_key'])(
    '%s changes something',
    (id) => expect(isRead(named(id))).toBe(false),
  );
  test.each(['list_clients', 'explain_publish', 'show_openapi'])('%s only reads', (id) =>
    expect(isRead(named(id))).toBe(true),
  );
});

describe('the search', () => {
  test('needs all words', () => {
    const found = matching(groups, 'delete retained').flatMap((group) => group.operations);
    expect(found.map((one) => one.id)).toContain('remove_retained');
    expect(found.map((one) => one.id)).not.toContain('list_retained');
  });
  test('leaves empty groups out', () => expect(matching(groups, 'nothing is called so')).toEqual([]));
});

describe('a form', () => {
  test('leaves out what is empty, and names what is missing', () => {
    expect(filled(named('kick_client'), { session: 'true' })).toEqual({
      path: { id: '{id}' },
      query: { session: 'true' },
      missing: ['id'],
    });
  });
  test('has a value of a list in each line', () =>
    expect(filled(named('show_stream'), { topics: 'a\n b \n' }).query['topics']).toEqual(['a', 'b']));
});
