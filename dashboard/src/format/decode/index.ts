// Payloads for people. Nothing here trusts the bytes: a wrong format is an answer, not a failure.
import { decodeCbor } from './cbor';
import { decodeMessagePack } from './msgpack';
import { type Shape, decodeProtobuf } from './protobuf';
import { type Aliases, decodeSparkplug } from './sparkplug';
import { written } from './value';
import { readable, withoutSchema } from './wire';

/** How a payload is read. */
export type Form = 'json' | 'text' | 'hex' | 'cbor' | 'msgpack' | 'protobuf' | 'sparkplug' | 'image';
export const FORMS: readonly Form[] = [
  'json',
  'text',
  'cbor',
  'msgpack',
  'protobuf',
  'sparkplug',
  'hex',
  'image',
];

/** What is known about a payload besides its bytes. */
export interface Known {
  /** The message that a schema says it is. */
  shape?: Shape;
  /** Names that births of Sparkplug have told. */
  aliases?: Aliases;
  /** The end of the payload is missing. */
  cut?: boolean;
}

export type Decoded =
  | { form: Exclude<Form, 'image'>; text: string }
  | { form: 'image'; type: string }
  | { form: 'failed'; wanted: Form; reason: string };

/** The form that the bytes most likely have. */
export function guess(bytes: Uint8Array): Form {
  if (imageType(bytes) !== null) return 'image';
  const text = readable(bytes);
  if (text !== null) return asJson(text) === null ? 'text' : 'json';
  // A single byte is a number in both formats: that says nothing.
  if (bytes.length > 1) {
    const first = bytes[0] ?? 0;
    if (first >= 0x80 && attempt(() => decodeMessagePack(bytes)) && (first < 0xa0 || first >= 0xdc))
      return 'msgpack';
    if (attempt(() => decodeCbor(bytes))) return 'cbor';
  }
  return 'hex';
}

export function decode(bytes: Uint8Array, form: Form, known: Known = {}): Decoded {
  switch (form) {
    case 'image': {
      const type = imageType(bytes);
      return type === null
        ? failed(form, 'it does not begin like PNG, JPEG, GIF, WebP or BMP')
        : { form, type };
    }
    case 'hex':
      return { form, text: hex(bytes) };
    case 'text': {
      const text = readable(bytes);
      return text === null ? failed(form, 'it is not UTF-8') : { form, text };
    }
    case 'json': {
      const text = readable(bytes);
      if (text === null) return failed(form, 'it is not UTF-8');
      const json = asJson(text);
      return json === null ? failed(form, 'it is not JSON') : { form, text: json };
    }
    case 'cbor':
      return binary(form, () => written(decodeCbor(bytes)));
    case 'msgpack':
      return binary(form, () => written(decodeMessagePack(bytes)));
    case 'protobuf': {
      const { shape } = known;
      return binary(form, () => written(shape ? decodeProtobuf(bytes, shape) : withoutSchema(bytes)));
    }
    case 'sparkplug':
      return binary(form, () => written(decodeSparkplug(bytes, known.aliases, known.cut)));
  }
}

/** Rows of 16 bytes: offset, hexadecimal, characters. */
export function hex(bytes: Uint8Array): string {
  const rows: string[] = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = [...bytes.subarray(at, at + 16)];
    const numbers = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const characters = row
      .map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.'))
      .join('');
    rows.push(`${at.toString(16).padStart(4, '0')}  ${numbers.padEnd(47)}  ${characters}`);
  }
  return rows.join('\n');
}

/** The type of an image by its first bytes; null if it is none. */
export function imageType(bytes: Uint8Array): string | null {
  const starts = (...wanted: number[]) => wanted.every((byte, index) => bytes[index] === byte);
  if (starts(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)) return 'image/png';
  if (starts(0xff, 0xd8, 0xff)) return 'image/jpeg';
  if (starts(0x47, 0x49, 0x46, 0x38)) return 'image/gif';
  if (starts(0x52, 0x49, 0x46, 0x46) && bytes[8] === 0x57 && bytes[9] === 0x45) return 'image/webp';
  return starts(0x42, 0x4d) && bytes.length > 26 ? 'image/bmp' : null;
}

function asJson(text: string): string | null {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

function binary(form: 'cbor' | 'msgpack' | 'protobuf' | 'sparkplug', read: () => string): Decoded {
  try {
    return { form, text: read() };
  } catch (error) {
    return failed(form, error instanceof Error ? error.message : String(error));
  }
}

function failed(wanted: Form, reason: string): Decoded {
  return { form: 'failed', wanted, reason };
}

function attempt(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch {
    return false;
  }
}
