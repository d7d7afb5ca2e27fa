import { describe, expect, test } from 'vitest';
import { commandOf, curlOf, each, quoted } from './same';

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
});
