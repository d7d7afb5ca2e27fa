import { describe, expect, test } from 'vitest';
import { apiCommand, commandOf, curlOf, curlRequest, each, quoted } from './same';

describe('a command', () => {
  test('quotes what a shell would take apart', () => {
    expect(quoted('meter-7')).toBe('meter-7');
    expect(quoted('pub a/#')).toBe("'pub a/#'");
    expect(quoted("it's; rm -rf ~")).toBe("'it'\\''s; rm -rf ~'");
    expect(quoted('')).toBe("''");
    expect(quoted('$HOME')).toBe("'$HOME'");
  });
  test('leaves out what is not there', () =>
    expect(commandOf(['users', 'add', 'a b', null, false, ...each('--role', ['x', 'y'])])).toBe(
      "thrum users add 'a b' --role x --role y",
    ));
});

describe('a request of curl', () => {
  test('has the whole address, also below a path', () =>
    expect(curlOf('/users', { name: "o'x", role: '' }, 'https://b.example/thrum/')).toBe(
      `curl -H "Authorization: Bearer $KEY" 'https://b.example/thrum/api/v1/users?name=o%27x'`,
    ));
  test('names the key by a variable, whatever the place of the page is', () =>
    expect(curlRequest('GET', 'api/v1/clients?limit=5', '', 'https://h.example/iot/#/admin/api')).toBe(
      `curl -H "Authorization: Bearer $KEY" 'https://h.example/iot/api/v1/clients?limit=5'`,
    ));
  test('sends a body with its type', () =>
    expect(curlRequest('POST', 'api/v1/publish', '{"topic":"it\'s"}', 'http://h/')).toBe(
      `curl -H "Authorization: Bearer $KEY" -X POST -H 'Content-Type: application/json' -d '{"topic":"it'\\''s"}' http://h/api/v1/publish`,
    ));
});

describe('a request of thrum api', () => {
  test('has the method in small letters', () =>
    expect(apiCommand('DELETE', '/clients/a b')).toBe(`thrum api delete '/clients/a b'`));
  test('has its body behind --data', () =>
    expect(apiCommand('POST', '/publish', '{}')).toBe(`thrum api post /publish --data '{}'`));
});
