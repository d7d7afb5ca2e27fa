// Protocol Buffers with a schema. The shapes come from `protoSchema.ts`, which knows the language of schemas; the
// bytes are read here, without generated code, which the policy of the page forbids.
import { DEPTH, Reader, Undecodable, type Value } from './value';
import {
  type WireField,
  double,
  fixed32,
  fixed64,
  float,
  signed32,
  signed64,
  varint,
  whole,
  wireFields,
} from './wire';

export type Scalar =
  | 'double'
  | 'float'
  | 'int32'
  | 'int64'
  | 'uint32'
  | 'uint64'
  | 'sint32'
  | 'sint64'
  | 'fixed32'
  | 'fixed64'
  | 'sfixed32'
  | 'sfixed64'
  | 'bool'
  | 'string'
  | 'bytes';

export type Kind =
  | { is: 'scalar'; scalar: Scalar }
  | { is: 'enum'; names: ReadonlyMap<number, string> }
  | { is: 'message'; shape: () => Shape }
  | { is: 'map'; key: Kind; value: Kind };

export interface ShapeField {
  name: string;
  repeated: boolean;
  kind: Kind;
}

/** A message of a schema. */
export interface Shape {
  name: string;
  fields: ReadonlyMap<number, ShapeField>;
}

/** A message with the names of its schema. A field that the schema does not have keeps its number. */
export function decodeProtobuf(bytes: Uint8Array, shape: Shape, depth = DEPTH): Map<Value, Value> {
  if (depth === 0) throw new Undecodable('the value is too deep');
  const found = new Map<Value, Value>();
  for (const field of wireFields(bytes)) {
    const known = shape.fields.get(field.id);
    if (known === undefined) {
      found.set(field.id, field.wire === 0 ? whole(field.number) : field.bytes.slice());
      continue;
    }
    const { kind, name } = known;
    if (kind.is === 'map') {
      const entry = decodeProtobuf(field.bytes, entryShape(kind), depth - 1);
      const before = found.get(name);
      const map = before instanceof Map ? before : new Map<Value, Value>();
      map.set(entry.get('key') ?? null, entry.get('value') ?? null);
      found.set(name, map);
    } else if (known.repeated) {
      const before = found.get(name);
      const list = Array.isArray(before) ? before : [];
      for (const value of several(field, kind, name, depth)) list.push(value);
      found.set(name, list);
    } else found.set(name, single(field, kind, name, depth));
  }
  return found;
}

function entryShape(kind: Kind & { is: 'map' }): Shape {
  return {
    name: '',
    fields: new Map([
      [1, { name: 'key', repeated: false, kind: kind.key }],
      [2, { name: 'value', repeated: false, kind: kind.value }],
    ]),
  };
}

/** The values of a repeated field, which may be packed. */
function* several(field: WireField, kind: Kind, name: string, depth: number): Generator<Value, void> {
  const wire = wireOf(kind);
  if (field.wire !== 2 || wire === 2) {
    yield single(field, kind, name, depth);
    return;
  }
  const reader = new Reader(field.bytes);
  while (reader.at < field.bytes.length) {
    const one: WireField =
      wire === 0
        ? { id: field.id, wire, number: varint(reader), bytes: field.bytes }
        : { id: field.id, wire, number: 0n, bytes: reader.take(wire === 1 ? 8 : 4) };
    yield single(one, kind, name, depth);
  }
}

function single(field: WireField, kind: Kind, name: string, depth: number): Value {
  const group = kind.is === 'message' && field.wire === 3;
  if (field.wire !== wireOf(kind) && !group)
    throw new Undecodable(`field ${field.id} does not have the type that the schema gives ${name}`);
  switch (kind.is) {
    case 'message':
      return decodeProtobuf(field.bytes, kind.shape(), depth - 1);
    case 'enum': {
      const value = signed32(field.number);
      return kind.names.get(value) ?? value;
    }
    case 'map':
      throw new Undecodable('a map has no single value');
    case 'scalar':
      return scalar(field, kind.scalar);
  }
}

function scalar(field: WireField, type: Scalar): Value {
  switch (type) {
    case 'double':
      return double(field.bytes);
    case 'float':
      return float(field.bytes);
    case 'int32':
      return signed32(field.number);
    case 'int64':
      return signed64(field.number);
    case 'uint32':
      return Number(BigInt.asUintN(32, field.number));
    case 'uint64':
      return whole(field.number);
    case 'sint32':
      return signed32((field.number >> 1n) ^ -(field.number & 1n));
    case 'sint64':
      return signed64((field.number >> 1n) ^ -(field.number & 1n));
    case 'fixed32':
      return fixed32(field.bytes);
    case 'fixed64':
      return whole(fixed64(field.bytes));
    case 'sfixed32':
      return fixed32(field.bytes) | 0;
    case 'sfixed64':
      return signed64(fixed64(field.bytes));
    case 'bool':
      return field.number !== 0n;
    case 'string':
      return new TextDecoder().decode(field.bytes);
    case 'bytes':
      return field.bytes.slice();
  }
}

/** How a type is on the wire. */
function wireOf(kind: Kind): 0 | 1 | 2 | 5 {
  if (kind.is === 'enum') return 0;
  if (kind.is !== 'scalar') return 2;
  switch (kind.scalar) {
    case 'double':
    case 'fixed64':
    case 'sfixed64':
      return 1;
    case 'float':
    case 'fixed32':
    case 'sfixed32':
      return 5;
    case 'string':
    case 'bytes':
      return 2;
    default:
      return 0;
  }
}
