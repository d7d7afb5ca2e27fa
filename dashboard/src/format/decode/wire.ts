// The wire format of Protocol Buffers: fields with numbers, without names.
import { DEPTH, Reader, Undecodable, type Value } from './value';

/** A field as it is in the bytes. */
export interface WireField {
  id: number;
  /** 0 a number of any length, 1 eight bytes, 2 bytes with their length, 3 a group, 5 four bytes. */
  wire: 0 | 1 | 2 | 3 | 5;
  number: bigint;
  bytes: Uint8Array;
}

const NO_BYTES = new Uint8Array();

/** Reads the fields of a message one after another. What cannot be read is told at its turn, so that the fields
 * before it are there. */
export function* wireFields(bytes: Uint8Array): Generator<WireField, void> {
  const reader = new Reader(bytes);
  while (reader.at < bytes.length) yield wireField(reader, DEPTH);
}

function wireField(reader: Reader, depth: number): WireField {
  const from = reader.at;
  const tag = varint(reader);
  const id = Number(tag >> 3n);
  if (id === 0 || id > 0x1fffffff) throw new Undecodable(`byte ${from} begins no field`);
  const wire = Number(tag & 7n);
  switch (wire) {
    case 0:
      return { id, wire, number: varint(reader), bytes: NO_BYTES };
    case 1:
      return { id, wire, number: 0n, bytes: reader.take(8) };
    case 2:
      return { id, wire, number: 0n, bytes: reader.take(Number(varint(reader))) };
    case 3: {
      // A group ends with a field of the same number; the formats of today have none.
      if (depth === 0) throw new Undecodable('the value is too deep');
      const begin = reader.at;
      for (;;) {
        const end = reader.at;
        if (varint(reader) === BigInt(id * 8 + 4))
          return { id, wire, number: 0n, bytes: reader.bytes.subarray(begin, end) };
        reader.at = end;
        wireField(reader, depth - 1);
      }
    }
    case 5:
      return { id, wire, number: 0n, bytes: reader.take(4) };
    default:
      throw new Undecodable(`byte ${from} begins no field`);
  }
}

/** A number of at most ten bytes, seven bits in each. */
export function varint(reader: Reader): bigint {
  let value = 0n;
  for (let shift = 0n; shift < 70n; shift += 7n) {
    const byte = reader.byte();
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return BigInt.asUintN(64, value);
  }
  throw new Undecodable(`the number before byte ${reader.at} does not end`);
}

/** A number without a fraction, as small as JavaScript knows it exactly. */
export function whole(value: bigint): number | bigint {
  return value >= -9007199254740991n && value <= 9007199254740991n ? Number(value) : value;
}

export const signed32 = (value: bigint) => Number(BigInt.asIntN(32, value));
export const signed64 = (value: bigint) => whole(BigInt.asIntN(64, value));

const view = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
export const float = (bytes: Uint8Array) => (bytes.length === 4 ? view(bytes).getFloat32(0, true) : NaN);
export const double = (bytes: Uint8Array) => (bytes.length === 8 ? view(bytes).getFloat64(0, true) : NaN);
export const fixed32 = (bytes: Uint8Array) => (bytes.length === 4 ? view(bytes).getUint32(0, true) : NaN);
export const fixed64 = (bytes: Uint8Array) => (bytes.length === 8 ? view(bytes).getBigUint64(0, true) : 0n);

/** Bytes as text if they are UTF-8 without control characters; else null. */
export function readable(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/.test(text) ? null : text;
  } catch {
    return null;
  }
}

/** A message without a schema: numbers of fields instead of names, and types as they seem to be. */
export function withoutSchema(bytes: Uint8Array, depth = DEPTH): Map<Value, Value> {
  if (depth === 0) throw new Undecodable('the value is too deep');
  const found = new Map<Value, Value>();
  for (const field of wireFields(bytes)) add(found, field.id, seeming(field, depth));
  return found;
}

function seeming(field: WireField, depth: number): Value {
  switch (field.wire) {
    case 0:
      return whole(field.number);
    case 1:
      return double(field.bytes);
    case 3:
      return withoutSchema(field.bytes, depth - 1);
    case 5:
      return float(field.bytes);
    case 2: {
      const text = readable(field.bytes);
      if (text !== null) return text;
      try {
        return withoutSchema(field.bytes, depth - 1);
      } catch {
        return field.bytes.slice();
      }
    }
  }
}

/** Puts a value in; further values of the same field make a list. */
function add(map: Map<Value, Value>, key: number, value: Value): void {
  const before = map.get(key);
  if (before === undefined) map.set(key, value);
  else if (Array.isArray(before)) before.push(value);
  else map.set(key, [before, value]);
}
