// CBOR (RFC 8949).
import { DEPTH, Reader, Tagged, Undecodable, type Value } from './value';

/** The value of bytes that are one item of CBOR. */
export function decodeCbor(bytes: Uint8Array): Value {
  const reader = new Reader(bytes);
  const value = item(reader, DEPTH);
  if (reader.at !== bytes.length) throw new Undecodable(`bytes follow behind byte ${reader.at}`);
  return value;
}

const BREAK = 0xff;

function item(reader: Reader, depth: number): Value {
  if (depth === 0) throw new Undecodable('the value is too deep');
  const first = reader.byte();
  const major = first >> 5;
  const info = first & 31;
  if (major === 7) return simple(reader, info);
  const length = argument(reader, info);
  switch (major) {
    case 0:
      return length ?? indefinite();
    case 1: {
      if (length === null) return indefinite();
      return typeof length === 'bigint' ? -1n - length : -1 - length;
    }
    case 2:
      return length === null ? joinedBytes(chunks(reader, 2)) : reader.take(Number(length)).slice();
    case 3:
      return length === null
        ? new TextDecoder().decode(joinedBytes(chunks(reader, 3)))
        : reader.text(Number(length));
    case 4: {
      const list: Value[] = [];
      while (length === null ? !ends(reader) : list.length < length) list.push(item(reader, depth - 1));
      return list;
    }
    case 5: {
      const map = new Map<Value, Value>();
      for (let count = 0; length === null ? !ends(reader) : count < length; count += 1)
        map.set(item(reader, depth - 1), item(reader, depth - 1));
      return map;
    }
    default:
      return new Tagged(Number(length ?? indefinite()), item(reader, depth - 1));
  }
}

/** The number behind the first byte; null for an indefinite length. */
function argument(reader: Reader, info: number): number | bigint | null {
  if (info < 24) return info;
  if (info === 24) return reader.byte();
  if (info === 25) return reader.view.getUint16(reader.skip(2));
  if (info === 26) return reader.view.getUint32(reader.skip(4));
  if (info === 27) {
    const large = reader.view.getBigUint64(reader.skip(8));
    return large <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(large) : large;
  }
  if (info === 31) return null;
  throw new Undecodable(`byte ${reader.at - 1} is reserved`);
}

function simple(reader: Reader, info: number): Value {
  switch (info) {
    case 20:
      return false;
    case 21:
      return true;
    case 22:
      return null;
    case 23:
      return undefined;
    case 25:
      return half(reader.view.getUint16(reader.skip(2)));
    case 26:
      return reader.view.getFloat32(reader.skip(4));
    case 27:
      return reader.view.getFloat64(reader.skip(8));
    default:
      throw new Undecodable(`the simple value ${info} is not known`);
  }
}

function half(bits: number): number {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const size =
    exponent === 0
      ? fraction * 2 ** -24
      : exponent === 31
        ? fraction === 0
          ? Infinity
          : NaN
        : (1 + fraction / 1024) * 2 ** (exponent - 15);
  return bits & 0x8000 ? -size : size;
}

function ends(reader: Reader): boolean {
  if (reader.bytes[reader.at] !== BREAK) return false;
  reader.at += 1;
  return true;
}

function chunks(reader: Reader, major: number): Uint8Array[] {
  const found: Uint8Array[] = [];
  while (!ends(reader)) {
    const first = reader.byte();
    if (first >> 5 !== major) throw new Undecodable(`byte ${reader.at - 1} is not a part of the text`);
    found.push(reader.take(Number(argument(reader, first & 31) ?? indefinite())));
  }
  return found;
}

function joinedBytes(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function indefinite(): never {
  throw new Undecodable('a number has no length');
}
