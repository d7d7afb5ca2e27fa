import { expect, test } from 'vitest';
import { bytesOf, oneLine } from './payload';

test('text becomes its UTF-8 bytes', () =>
  expect(bytesOf({ payload: 'é' })).toEqual(new Uint8Array([0xc3, 0xa9])));
test('base64 becomes its bytes', () =>
  expect(bytesOf({ payload_base64: 'AP8=' })).toEqual(new Uint8Array([0, 255])));
test('a payload that the caller may not see is null', () =>
  expect(bytesOf({ payload: null, payload_base64: null })).toBeNull());
test('a line has no line breaks', () => expect(oneLine({ payload: 'a\n  b' })).toBe('a b'));
test('bytes are a line in hexadecimal, cut', () => {
  expect(oneLine({ payload_base64: 'AP8=' })).toBe('00 ff');
  expect(oneLine({ payload_base64: btoa('x'.repeat(100)) }, 12)).toBe('78 78 78 78…');
});
