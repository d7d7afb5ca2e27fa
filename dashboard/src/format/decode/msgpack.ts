// MessagePack.
import { DEPTH, Reader, Tagged, Undecodable, type Value } from './value';

/** The value of bytes that are one object of MessagePack. */
export function decodeMessagePack(bytes: Uint8Array): Value {
  const reader = new Reader(bytes);
  const value = object(reader, DEPTH);
  if (reader.at !== bytes.length) throw new Undecodable(`bytes follow behind byte ${reader.at}`);
  return value;
}

function object(reader: Reader, depth: number): Value {
  if (depth === 0) throw new Undecodable('the value is too deep');
  const { view } = reader;
  const first = reader.byte();
  if (first < 0x80) return first;
  if (first < 0x90) return map(reader, first & 15, depth);
  if (first < 0xa0) return list(reader, first & 15, depth);
  if (first < 0xc0) return reader.text(first & 31);
  if (first >= 0xe0) return first - 256;
  switch (first) {
    case 0xc0:
      return null;
    case 0xc2:
      return false;
    case 0xc3:
      return true;
    case 0xc4:
      return reader.take(reader.byte()).slice();
    case 0xc5:
      return reader.take(view.getUint16(reader.skip(2))).slice();
    case 0xc6:
      return reader.take(view.getUint32(reader.skip(4))).slice();
    case 0xc7:
      return extension(reader, reader.byte());
    case 0xc8:
      return extension(reader, view.getUint16(reader.skip(2)));
    case 0xc9:
      return extension(reader, view.getUint32(reader.skip(4)));
    case 0xca:
      return view.getFloat32(reader.skip(4));
    case 0xcb:
      return view.getFloat64(reader.skip(8));
    case 0xcc:
      return reader.byte();
    case 0xcd:
      return view.getUint16(reader.skip(2));
    case 0xce:
      return view.getUint32(reader.skip(4));
    case 0xcf:
      return view.getBigUint64(reader.skip(8));
    case 0xd0:
      return view.getInt8(reader.skip(1));
    case 0xd1:
      return view.getInt16(reader.skip(2));
    case 0xd2:
      return view.getInt32(reader.skip(4));
    case 0xd3:
      return view.getBigInt64(reader.skip(8));
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return extension(reader, 2 ** (first - 0xd4));
    case 0xd9:
      return reader.text(reader.byte());
    case 0xda:
      return reader.text(view.getUint16(reader.skip(2)));
    case 0xdb:
      return reader.text(view.getUint32(reader.skip(4)));
    case 0xdc:
      return list(reader, view.getUint16(reader.skip(2)), depth);
    case 0xdd:
      return list(reader, view.getUint32(reader.skip(4)), depth);
    case 0xde:
      return map(reader, view.getUint16(reader.skip(2)), depth);
    case 0xdf:
      return map(reader, view.getUint32(reader.skip(4)), depth);
    default:
      throw new Undecodable(`byte ${reader.at - 1} has no meaning`);
  }
}

function list(reader: Reader, length: number, depth: number): Value[] {
  const found: Value[] = [];
  while (found.length < length) found.push(object(reader, depth - 1));
  return found;
}

function map(reader: Reader, length: number, depth: number): Map<Value, Value> {
  const found = new Map<Value, Value>();
  for (let count = 0; count < length; count += 1)
    found.set(object(reader, depth - 1), object(reader, depth - 1));
  return found;
}

function extension(reader: Reader, length: number): Tagged {
  const type = reader.view.getInt8(reader.skip(1));
  return new Tagged(type, reader.take(length).slice());
}
