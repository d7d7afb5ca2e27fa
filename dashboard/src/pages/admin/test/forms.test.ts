import { describe, expect, test } from 'vitest';
import {
  bounded,
  encode,
  filterProblem,
  matches,
  secondsOf,
  topicProblem,
  userProperties,
  webSocketAddress,
  base64,
  correlationOf,
} from './forms';

describe('a payload', () => {
  test('as hexadecimal may have blanks and colons', () =>
    expect(encode('00 ff:0A 0x10', 'hex')).toEqual({ bytes: new Uint8Array([0, 255, 10, 16]) }));
  test('of an odd number of digits is none', () =>
    expect(encode('abc', 'hex')).toMatchObject({ wrong: 'hex' }));
  test('of other letters is none', () => expect(encode('zz', 'hex')).toEqual({ wrong: 'hex', reason: 'z' }));
  test('as JSON has to be JSON, and is sent as it is written', () => {
    expect(encode('{"a": 1}', 'json')).toEqual({ bytes: new TextEncoder().encode('{"a": 1}') });
    expect(encode('{', 'json')).toMatchObject({ wrong: 'json' });
  });
  test('may be empty in every form', () => {
    for (const format of ['json', 'text', 'hex'] as const)
      expect(encode('', format)).toEqual({ bytes: new Uint8Array() });
  });
});

test('a user property may come several times', () =>
  expect(userProperties('a=1\nb = x=y\na=2\n\n')).toEqual({ a: ['1', '2'], b: 'x=y' }));
test('no line is no property', () => expect(userProperties(' \n')).toBeNull());

test.each([
  ['60', 60],
  ['', null],
  ['-1', null],
  ['99999999999', null],
  ['9999999999', 4294967295],
])('%j seconds', (text, seconds) => expect(secondsOf(text)).toBe(seconds));

describe('topics and filters', () => {
  test('a topic has no wildcards', () => {
    expect(topicProblem('a/b')).toBeNull();
    expect(topicProblem('a/+')).toBe('wildcard');
    expect(topicProblem('')).toBe('empty');
  });
  test.each([
    ['a/#', null],
    ['#', null],
    ['a/+/b', null],
    ['a#', 'hash'],
    ['#/a', 'hash'],
    ['a+/b', 'plus'],
  ])('the filter %s', (filter, problem) => expect(filterProblem(filter)).toBe(problem));
  test.each([
    ['a/+', 'a/b', true],
    ['a/+', 'a/b/c', false],
    ['a/#', 'a', true],
    ['a/#', 'a/b/c', true],
    ['#', '$SYS/x', false],
    ['+/x', '$SYS/x', false],
    ['$SYS/#', '$SYS/x', true],
    ['$share/g/a/+', 'a/b', true],
    ['a/b', 'a', false],
  ])('%s takes %s: %s', (filter, topic, takes) => expect(matches(filter, topic)).toBe(takes));
});

describe('the address', () => {
  test('is at the origin of the page', () =>
    expect(webSocketAddress('http://h:8080/#/admin/test', 'mqtt')).toBe('ws://h:8080/mqtt'));
  test('stays below the path of a proxy, and is safe where the page is', () =>
    expect(webSocketAddress('https://h/iot/broker/?x=1#/a', '/mqtt')).toBe('wss://h/iot/broker/mqtt'));
  test('has no credentials, whatever is in it', () =>
    expect(webSocketAddress('https://u:p@h/', 'mqtt?password=x')).toBe('wss://h/mqtt'));
});

test('the newest row is first, and old ones are forgotten', () =>
  expect(bounded([2, 1], [3, 4], 3)).toEqual([4, 3, 2]));

describe('correlation data of a request', () => {
  const hexOf = (found: ReturnType<typeof correlationOf>) => {
    const encoded = encode(found.correlation, found.correlationForm);
    return 'bytes' in encoded ? Buffer.from(encoded.bytes).toString('hex') : encoded.reason;
  };
  test.each([
    ['', 'text'],
    ['3432', 'text'],
    ['c3a4', 'text'],
    ['ff00fe', 'hex'],
    ['efbbbf41', 'hex'],
    ['0a41', 'hex'],
    ['4100', 'hex'],
  ])('%s is answered with the same bytes', (digits, form) => {
    const found = correlationOf(digits);
    expect([found.correlationForm, hexOf(found)]).toEqual([form, digits]);
  });
});

test('base64 has all bytes of a payload that is long', () => {
  const bytes = Uint8Array.from({ length: 200_001 }, (_, index) => index % 251);
  expect(base64(bytes)).toBe(Buffer.from(bytes).toString('base64'));
});
