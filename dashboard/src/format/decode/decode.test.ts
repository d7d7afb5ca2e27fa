import { describe, expect, test } from 'vitest';
import { decodeCbor } from './cbor';
import { decodeMessagePack } from './msgpack';
import { decode, guess, hex, imageType } from './index';
import { Tagged, type Value, written } from './value';

const bytes = (text: string) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const text = (value: string) => new TextEncoder().encode(value);

describe('CBOR', () => {
  // Examples of RFC 8949, appendix A.
  test.each<[string, Value]>([
    ['00', 0],
    ['1818', 24],
    ['1903e8', 1000],
    ['1bffffffffffffffff', 18446744073709551615n],
    ['3903e7', -1000],
    ['f93e00', 1.5],
    ['f90001', 5.960464477539063e-8],
    ['fa47c35000', 100000],
    ['fb3ff199999999999a', 1.1],
    ['f97c00', Infinity],
    ['f4', false],
    ['f6', null],
    ['f7', undefined],
    ['6449455446', 'IETF'],
    ['83010203', [1, 2, 3]],
    ['9f0102ff', [1, 2]],
    [
      'a201020304',
      new Map([
        [1, 2],
        [3, 4],
      ]),
    ],
    ['7f657374726561646d696e67ff', 'streaming'],
    ['4401020304', new Uint8Array([1, 2, 3, 4])],
  ])('%s', (input, value) => expect(decodeCbor(bytes(input))).toEqual(value));
  test('a tag stays with its value', () =>
    expect(decodeCbor(bytes('c11a514b67b0'))).toEqual(new Tagged(1, 1363896240)));
  test.each(['1903', '830102', 'ff', '0000', '1c', '5b7fffffffffffffff'])('%s is refused', (input) =>
    expect(() => decodeCbor(bytes(input))).toThrow(),
  );
  test('depth has a limit', () =>
    expect(() => decodeCbor(bytes(`${'81'.repeat(100)}00`))).toThrow('too deep'));
});

describe('MessagePack', () => {
  test.each<[string, Value]>([
    ['07', 7],
    ['ff', -1],
    ['ccff', 255],
    ['cd0100', 256],
    ['d1ff00', -256],
    ['cb3ff199999999999a', 1.1],
    ['c0', null],
    ['c3', true],
    ['a26869', 'hi'],
    ['d9026869', 'hi'],
    ['92a1610a', ['a', 10]],
    [
      '82a17401a175a143',
      new Map<Value, Value>([
        ['t', 1],
        ['u', 'C'],
      ]),
    ],
    ['c4020102', new Uint8Array([1, 2])],
  ])('%s', (input, value) => expect(decodeMessagePack(bytes(input))).toEqual(value));
  test('an extension keeps its type', () =>
    expect(decodeMessagePack(bytes('d6ff00000001'))).toEqual(new Tagged(-1, new Uint8Array([0, 0, 0, 1]))));
  test.each(['c1', '92a161', 'dd7fffffff00', '0101'])('%s is refused', (input) =>
    expect(() => decodeMessagePack(bytes(input))).toThrow(),
  );
});

describe('guess', () => {
  test.each([
    [text('{"t":1}'), 'json'],
    [text('21.7'), 'json'],
    [text('running'), 'text'],
    [bytes('a26174fb4031000000000000617561 43'.replace(' ', '')), 'cbor'],
    [bytes('82a174ca41a80000a175a143'), 'msgpack'],
    [bytes('fffe00'), 'hex'],
    [new Uint8Array(), 'text'],
    [bytes('89504e470d0a1a0a'), 'image'],
  ] as const)('%s', (input, form) => expect(guess(input)).toBe(form));
});

describe('decode', () => {
  test('JSON is written with indents', () =>
    expect(decode(text('{"t":1}'), 'json')).toEqual({ form: 'json', text: '{\n  "t": 1\n}' }));
  test('a wrong form is an answer with a reason', () =>
    expect(decode(text('x'), 'json')).toEqual({ form: 'failed', wanted: 'json', reason: 'it is not JSON' }));
  test('markup stays text', () =>
    expect(decode(text('<img src=x>'), 'text')).toEqual({ form: 'text', text: '<img src=x>' }));
  test('hex has offsets and characters', () =>
    expect(hex(text('0123456789abcdefX')).split('\n')).toEqual([
      '0000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef',
      `0010  58${' '.repeat(45)}  X`,
    ]));
  test('bytes that begin like no image are none', () => expect(imageType(text('PNG'))).toBeNull());
  test('maps, bytes and tags have a text', () =>
    expect(
      written(
        new Map<Value, Value>([
          ['a', new Uint8Array([255])],
          [1, new Tagged(2, [])],
        ]),
      ),
    ).toBe('{\n  "a": h\'ff\',\n  1: 2([])\n}'));
});
