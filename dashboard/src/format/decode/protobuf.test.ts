import protobuf from 'protobufjs';
import { describe, expect, test } from 'vitest';
import { decode } from './index';
import { decodeProtobuf } from './protobuf';
import { readSchema } from './protoSchema';
import { Births, birthsOf, decodeSparkplug, sparkplugTopic } from './sparkplug';
import { type Value, written } from './value';
import { withoutSchema } from './wire';

const bytes = (text: string) => Uint8Array.from(text.match(/\S\S/g) ?? [], (pair) => parseInt(pair, 16));
const plain = (value: Value): unknown =>
  value instanceof Map
    ? Object.fromEntries(
        [...value].map(([key, one]) => [typeof key === 'string' ? key : written(key), plain(one)]),
      )
    : Array.isArray(value)
      ? value.map(plain)
      : value;

const SCHEMA = `
syntax = "proto3";
package plant;
import "google/protobuf/timestamp.proto";
// A reading.
message Reading {
  enum State { UNKNOWN = 0; RUNNING = 1; }
  message Point { sint32 x = 1; double y = 2; }
  string name = 1;
  int32 level = 2;
  repeated uint32 raw = 3;
  State state = 4;
  Point point = 5;
  map<string, float> limits = 6;
  bytes extra = 7;
  oneof which { bool on = 8; fixed32 code = 9; }
  google.protobuf.Timestamp at = 10;
  int64 big = 11;
}
message Other { Reading reading = 1; Other next = 2; }
`;
const schema = readSchema(SCHEMA);
const reading = schema.shape('plant.Reading');
if (!reading) throw new Error('the schema has lost a message');

describe('Protobuf with a schema', () => {
  test('the schema names its messages, without those that it imports', () =>
    expect(schema.messages).toEqual(['plant.Reading', 'plant.Reading.Point', 'plant.Other']));

  // Bytes of the library's own encoder, which the page cannot use.
  test('every type is read', () => {
    const { root } = protobuf.parse(SCHEMA, new protobuf.Root(), { keepCase: true });
    root.addJSON(protobuf.common.get('google/protobuf/timestamp.proto')?.nested ?? {});
    const type = root.lookupType('plant.Reading');
    const sent = type
      .encode({
        name: 'prs1',
        level: -1,
        raw: [1, 300],
        state: 1,
        point: { x: -2, y: 2.5 },
        limits: { min: 0.625, max: 2 },
        extra: new Uint8Array([255, 0]),
        on: true,
        at: { seconds: 1795000000 },
        big: -5,
      })
      .finish();
    expect(plain(decodeProtobuf(Uint8Array.from(sent), reading))).toEqual({
      name: 'prs1',
      level: -1,
      raw: [1, 300],
      state: 'RUNNING',
      point: { x: -2, y: 2.5 },
      limits: { min: 0.625, max: 2 },
      extra: new Uint8Array([255, 0]),
      on: true,
      at: { seconds: 1795000000 },
      big: -5,
    });
  });

  test('numbers that JavaScript does not know exactly stay exact', () =>
    expect(plain(decodeProtobuf(bytes('58ffffffffffffffff7f'), reading))).toEqual({
      big: 9223372036854775807n,
    }));

  test('a list may be packed or not', () =>
    expect(plain(decodeProtobuf(bytes('1801 1a020203 1804'), reading))).toEqual({ raw: [1, 2, 3, 4] }));

  test('a field that the schema does not have keeps its number', () =>
    expect(plain(decodeProtobuf(bytes('a00607'), reading))).toEqual({ 100: 7 }));

  test('a value of an enumeration without a name is a number', () =>
    expect(plain(decodeProtobuf(bytes('2009'), reading))).toEqual({ state: 9 }));

  test('another type than the schema says is refused', () =>
    expect(() => decodeProtobuf(bytes('0801'), reading)).toThrow('name'));

  test.each([
    ['an end too early', 'message A {', 'illegal'],
    ['a type that is nowhere', 'syntax = "proto3"; message A { Missing b = 1; }', 'Missing'],
    ['another file', 'syntax = "proto3"; import "own.proto"; message A { int32 b = 1; }', 'own.proto'],
    ['too long a text', `//${'x'.repeat(300_000)}`, 'KiB'],
  ])('a wrong schema is told: %s', (_, text, part) => expect(() => readSchema(text)).toThrow(part));

  test('a message in itself has a limit', () => {
    const other = schema.shape('plant.Other');
    if (!other) throw new Error('the schema has lost a message');
    let inner: number[] = [];
    for (let depth = 0; depth < 40; depth += 1)
      inner = inner.length < 128 ? [0x12, inner.length, ...inner] : inner;
    expect(() => decodeProtobuf(Uint8Array.from(inner), other)).toThrow('too deep');
  });
});

describe('Protobuf without a schema', () => {
  test('fields have numbers, and types as they seem', () =>
    expect(
      plain(withoutSchema(bytes('0896 01 12 07 74657374696e67 1a03 089601 2102 00000000000000'))),
    ).toMatchObject({ 1: 150, 2: 'testing', 3: { 1: 150 } }));
  test.each(['08', '0a05 61', '00', '0f', '08ffffffffffffffffffff01'])('%s is refused', (input) =>
    expect(decode(bytes(input), 'protobuf').form).toBe('failed'),
  );
  test('no bytes at all make it throw or take long', () => {
    let seed = 7;
    const random = () => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) >> 16;
    for (let round = 0; round < 3000; round += 1) {
      const input = Uint8Array.from({ length: random() % 80 }, () => random() & 255);
      for (const known of [{}, { shape: reading }]) decode(input, 'protobuf', known);
      decode(input, 'sparkplug', { cut: round % 2 === 0 });
      new Births().learn('spBv1.0/g/NBIRTH/n', input);
    }
    // Bytes within bytes within bytes.
    const nested = new Uint8Array(64 * 1024).fill(0x0a);
    expect(decode(nested, 'protobuf').form).not.toBe('hex');
  });
});

describe('Sparkplug B', () => {
  test.each([
    ['spBv1.0/g/NDATA/n', { group: 'g', type: 'NDATA', node: 'n', device: null }],
    ['spBv1.0/g/DBIRTH/n/d', { group: 'g', type: 'DBIRTH', node: 'n', device: 'd' }],
    ['spBv1.0/STATE/host', null],
    ['spBv1.0/g/DDATA/n', null],
    ['spBv1.0/g/NDATA/n/d', null],
    ['site/a', null],
  ])('%s', (topic, wanted) => expect(sparkplugTopic(topic)).toEqual(wanted));

  test('the births of a device are its own and that of its node', () =>
    expect(birthsOf('spBv1.0/g/DDATA/n/d')).toEqual(['spBv1.0/g/NBIRTH/n', 'spBv1.0/g/DBIRTH/n/d']));

  // A time, one metric "temp" (alias 1, Double, 21.5), seq 0.
  const birth = bytes('08aab6e2a6a02b 1213 0a0474656d70 1001 200a 690000000000803540 1800');
  // One metric with alias 1 only, Int8 -3, seq 1.
  const data = bytes('08aab6e2a6a02b 1207 1001 2001 50fd01 1801');

  test('a birth has names, types and values', () =>
    expect(plain(decodeSparkplug(birth))).toEqual({
      timestamp: '2017-02-03T16:39:48.778Z',
      seq: 0,
      metrics: [{ name: 'temp', alias: 1, type: 'Double', value: 21.5 }],
    }));

  test('an alias gets the name of the birth, and a new birth forgets the old one', () => {
    const births = new Births();
    expect(plain(decodeSparkplug(data, births.of('spBv1.0/g/NDATA/n')))).toMatchObject({
      metrics: [{ alias: 1, type: 'Int8', value: -3 }],
    });
    births.learn('spBv1.0/g/NBIRTH/n', birth);
    expect(plain(decodeSparkplug(data, births.of('spBv1.0/g/DDATA/n/d')))).toMatchObject({
      metrics: [{ name: 'temp', alias: 1 }],
    });
    expect(births.of('spBv1.0/g/NDATA/other').name(1)).toBeUndefined();
    births.learn('spBv1.0/g/NBIRTH/n', new Uint8Array());
    expect(births.of('spBv1.0/g/NDATA/n').name(1)).toBeUndefined();
  });

  test('data sets, properties and nulls are read', () => {
    // A DataSet of the column "n" (Int32) with the row 1 and an empty one, a property "unit" = "C", and a null.
    const input = bytes(
      '12260a017320104a0d0a04756e69741205080c4201438a01' +
        '0f080112016e180322040a020801220012070a017820033801',
    );
    expect(plain(decodeSparkplug(input))).toEqual({
      metrics: [
        {
          name: 's',
          type: 'DataSet',
          properties: { unit: 'C' },
          value: { columns: ['n'], types: ['Int32'], rows: [[1], []] },
        },
        { name: 'x', type: 'Int32', value: null },
      ],
    });
  });

  test('a cut payload shows the metrics that are whole', () => {
    const longer = Uint8Array.from([...birth.subarray(0, -2), 0x12, 0x20, 0x0a]);
    expect(plain(decodeSparkplug(longer, undefined, true))).toMatchObject({ metrics: [{ name: 'temp' }] });
    expect(() => decodeSparkplug(longer)).toThrow();
    const births = new Births();
    births.learn('spBv1.0/g/NBIRTH/n', longer);
    expect(births.of('spBv1.0/g/NDATA/n').name(1)).toBe('temp');
  });

  test('what is no payload of Sparkplug is refused', () =>
    expect(decode(bytes('7a0161'), 'sparkplug')).toMatchObject({ form: 'failed', wanted: 'sparkplug' }));
});
