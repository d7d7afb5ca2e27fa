import { describe, expect, test } from 'vitest';
import { commandOf, curlOf, shellWord } from './asCode';

describe('requests as code', () => {
  test('a plain word has no quotes', () => expect(shellWord('/clients')).toBe('/clients'));
  test('a quote inside ends no word', () => expect(shellWord("a'b; rm")).toBe(`'a'\\''b; rm'`));
  test('curl names the key by a variable and the address of this page', () =>
    expect(curlOf('GET', '/clients?limit=5', '', 'https://h.example/iot/#/admin/api')).toBe(
      `curl -H "Authorization: Bearer $KEY" 'https://h.example/iot/api/v1/clients?limit=5'`,
    ));
  test('curl sends a body with its type', () =>
    expect(curlOf('POST', 'publish', '{"topic":"it\'s"}', 'http://h/')).toBe(
      `curl -H "Authorization: Bearer $KEY" -X POST -H 'Content-Type: application/json' -d '{"topic":"it'\\''s"}' http://h/api/v1/publish`,
    ));
  test('the command has the method in small letters', () =>
    expect(commandOf('DELETE', 'clients/a b')).toBe(`thrum api delete '/clients/a b'`));
});
