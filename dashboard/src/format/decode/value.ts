// Values of binary formats, and their text.

/** A decoded value. Maps may have keys that JSON does not know. */
export type Value =
  null | undefined | boolean | number | bigint | string | Uint8Array | Value[] | Map<Value, Value> | Tagged;

/** A value with a tag (CBOR) or a type (MessagePack). */
export class Tagged {
  readonly tag: number;
  readonly value: Value;

  constructor(tag: number, value: Value) {
    this.tag = tag;
    this.value = value;
  }
}

/** Bytes that are not in the format, and where that showed. */
export class Undecodable extends Error {}

/** Reads bytes one after another. */
export class Reader {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Moves on by `length` bytes and answers where they begin. */
  skip(length: number): number {
    const from = this.at;
    if (length < 0 || from + length > this.bytes.length)
      throw new Undecodable(`the bytes end at ${this.bytes.length}`);
    this.at = from + length;
    return from;
  }

  byte(): number {
    return this.view.getUint8(this.skip(1));
  }

  take(length: number): Uint8Array {
    const from = this.skip(length);
    return this.bytes.subarray(from, from + length);
  }

  text(length: number): string {
    return new TextDecoder().decode(this.take(length));
  }
}

/** Levels that a value may be deep. */
export const DEPTH = 32;

/** A value as indented text, like JSON; bytes as h'00ff'. */
export function written(value: Value, indent = ''): string {
  if (value === undefined) return 'undefined';
  if (value === null) return 'null';
  if (value instanceof Uint8Array)
    return `h'${[...value].map((byte) => byte.toString(16).padStart(2, '0')).join('')}'`;
  if (value instanceof Tagged) return `${value.tag}(${written(value.value, indent)})`;
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    return `[\n${value.map((one) => inner + written(one, inner)).join(',\n')}\n${indent}]`;
  }
  if (value instanceof Map) {
    if (value.size === 0) return '{}';
    const rows = [...value].map(([key, one]) => `${inner}${written(key, inner)}: ${written(one, inner)}`);
    return `{\n${rows.join(',\n')}\n${indent}}`;
  }
  return typeof value === 'string' ? JSON.stringify(value) : value.toString();
}
