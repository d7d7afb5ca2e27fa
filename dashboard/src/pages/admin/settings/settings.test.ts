import { describe, expect, test } from 'vitest';
import { fieldOf, groupOf, purpose, readField, reasonOfDefault, written } from './schema';
import { asToml, diffLines, tomlValue } from './toml';

const schema = {
  properties: {
    limits: {
      properties: {
        client: { properties: { queue: { type: 'integer', minimum: 1, maximum: 100 } } },
        memory: { type: ['integer', 'string'], format: 'size' },
      },
    },
    acl: {
      properties: {
        default: { oneOf: [{ const: 'auto', description: 'By itself.' }, { const: 'deny' }] },
        rules: { type: ['array'] },
      },
    },
    auth: { properties: { anonymous: { type: ['boolean', 'string'] } } },
    listeners: { additionalProperties: { properties: { retain: { type: 'boolean' } } } },
  },
};

describe('the field of a key', () => {
  test.each([
    ['limits.client.queue', 5, { kind: 'integer', least: 1, most: 100 }],
    ['limits.memory', '1MB', { kind: 'text', numbers: true, booleans: false }],
    ['acl.rules', [], { kind: 'list' }],
    ['listeners.mqtt.retain', true, { kind: 'boolean' }],
    ['listeners.mqtt.unknown', 'x', { kind: 'text', numbers: false, booleans: false }],
    [
      'acl.default',
      'auto',
      {
        kind: 'choice',
        choices: [
          { value: 'auto', note: 'By itself.' },
          { value: 'deny', note: '' },
        ],
      },
    ],
  ])('%s', (key, value, field) => expect(fieldOf(schema, key, value)).toEqual(field));

  test('a table with a name of its own is a group', () => {
    expect(groupOf(schema, 'listeners.mqtt.retain')).toBe('listeners.mqtt');
    expect(groupOf(schema, 'limits.client.queue')).toBe('limits');
  });
});

describe('what is written in a field', () => {
  const integer = { kind: 'integer', least: null, most: null } as const;
  test('digits are a number, also in groups', () => {
    expect(readField(integer, '200_000')).toBe(200000);
    expect(readField(integer, '200 000')).toBe(200000);
  });
  test('what is no number goes to the broker as it is, which refuses it', () =>
    expect(readField(integer, 'many')).toBe('many'));
  test('a size is a text or a number of bytes', () => {
    const size = { kind: 'text', numbers: true, booleans: false } as const;
    expect(readField(size, '2MB')).toBe('2MB');
    expect(readField(size, '2048')).toBe(2048);
  });
  test('a text that looks like a number stays a text where no number is meant', () =>
    expect(readField({ kind: 'text', numbers: false, booleans: false }, '17')).toBe('17'));
  test('true is a value only where one is meant', () => {
    expect(readField({ kind: 'text', numbers: false, booleans: true }, 'true')).toBe(true);
    expect(readField({ kind: 'text', numbers: false, booleans: false }, 'true')).toBe('true');
  });
  test('a list has a value in each line that is not empty', () => {
    expect(readField({ kind: 'list' }, 'a\n\n b \n')).toEqual(['a', 'b']);
    expect(written(['a', 'b'])).toBe('a\nb');
  });
});

describe('descriptions', () => {
  const text = 'Messages queued for a client.\nDefault `10_000`: hours of data.';
  test('the purpose is without the default', () =>
    expect(purpose(text)).toBe('Messages queued for a client.'));
  test('the default has its reason', () => expect(reasonOfDefault(text)).toBe('`10_000`: hours of data.'));
});

describe('TOML', () => {
  test.each([
    [200000, '200_000'],
    [5, '5'],
    [true, 'true'],
    ['a"b', '"a\\"b"'],
    [['a', 1], '["a", 1]'],
    [{ a: 1, 'b c': 'x' }, '{ a = 1, "b c" = "x" }'],
  ])('%j is %s', (value, text) => expect(tomlValue(value)).toBe(text));

  const differences = [
    { key: 'limits.client.queue', before: 10000, after: 5000 },
    { key: 'limits.client.inflight', before: 64, after: 256 },
    { key: 'sinks.orders.filter', before: null, after: 'orders/#' },
    { key: 'log.level', before: 'info', after: null },
  ];
  test('a difference has the lines of each table together', () =>
    expect(diffLines(differences).map(({ kind, text }) => `${kind} ${text}`)).toEqual([
      'table [limits.client]',
      'del queue = 10_000',
      'add queue = 5_000',
      'del inflight = 64',
      'add inflight = 256',
      'gap ',
      'table [sinks.orders]',
      'add filter = "orders/#"',
      'gap ',
      'table [log]',
      'del level = "info"',
    ]));
  test('what is copied has the new values only', () =>
    expect(asToml(differences.slice(0, 1))).toBe('[limits.client]\nqueue = 5_000\n'));
});
