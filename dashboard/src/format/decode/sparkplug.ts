// Sparkplug B (Eclipse Sparkplug 3.0): metrics in Protocol Buffers, whose names a birth tells once.
import { DEPTH, Undecodable, type Value } from './value';
import { type WireField, double, float, signed64, whole, wireFields } from './wire';

/** What a topic of Sparkplug says: "spBv1.0/GROUP/DDATA/NODE/DEVICE". */
export interface SparkplugTopic {
  group: string;
  type: string;
  node: string;
  device: string | null;
}

const TYPES = ['NBIRTH', 'NDATA', 'NDEATH', 'NCMD', 'DBIRTH', 'DDATA', 'DDEATH', 'DCMD'];

/** Null for other topics, and for STATE, whose payload is JSON. */
export function sparkplugTopic(topic: string): SparkplugTopic | null {
  const [space, group, type, node, device, ...rest] = topic.split('/');
  if (space !== 'spBv1.0' || group === undefined || type === undefined || node === undefined) return null;
  if (rest.length > 0 || !TYPES.includes(type)) return null;
  return type.startsWith('D') === (device !== undefined)
    ? { group, type, node, device: device ?? null }
    : null;
}

/** The topics with the births that name the aliases of a topic. */
export function birthsOf(topic: string): string[] {
  const found = sparkplugTopic(topic);
  if (found === null) return [];
  const node = `spBv1.0/${found.group}/NBIRTH/${found.node}`;
  return found.device === null
    ? [node]
    : [node, `spBv1.0/${found.group}/DBIRTH/${found.node}/${found.device}`];
}

/** Names of aliases. They are unique for a node with all its devices. */
export interface Aliases {
  name: (alias: number | bigint) => string | undefined;
}

/** What births have told: names of aliases for each node and device, the newest only. */
export class Births {
  readonly #births = new Map<string, Map<number | bigint, string>>();
  static readonly MOST = 64;
  static readonly ALIASES = 10_000;

  /** Takes the names from a birth; other messages, and what is behind a cut, are passed over. */
  learn(topic: string, payload: Uint8Array): void {
    if (!birthsOf(topic).includes(topic)) return;
    const names = new Map<number | bigint, string>();
    try {
      for (const field of wireFields(payload)) {
        if (field.id !== 2 || field.wire !== 2) continue;
        const found = named(field.bytes);
        if (found && names.size < Births.ALIASES) names.set(found.alias, found.name);
      }
    } catch {
      // The rest is cut.
    }
    this.#births.delete(topic);
    this.#births.set(topic, names);
    const oldest = this.#births.keys().next().value;
    if (this.#births.size > Births.MOST && oldest !== undefined) this.#births.delete(oldest);
  }

  of(topic: string): Aliases {
    const known = birthsOf(topic).reverse();
    return {
      name: (alias) => {
        for (const birth of known) {
          const name = this.#births.get(birth)?.get(alias);
          if (name !== undefined) return name;
        }
        return undefined;
      },
    };
  }
}

function named(bytes: Uint8Array): { alias: number | bigint; name: string } | null {
  let alias: number | bigint | null = null;
  let name: string | null = null;
  for (const field of wireFields(bytes)) {
    if (field.id === 1) name = text(field);
    else if (field.id === 2) alias = whole(field.number);
    if (name !== null && alias !== null) return { alias, name };
  }
  return null;
}

const NOBODY: Aliases = { name: () => undefined };

/** A payload of Sparkplug with its metrics by name. `cut` says that its end is missing: then its metrics so far. */
export function decodeSparkplug(
  bytes: Uint8Array,
  aliases: Aliases = NOBODY,
  cut = false,
): Map<Value, Value> {
  const found = new Map<Value, Value>();
  const metrics: Value[] = [];
  try {
    for (const field of wireFields(bytes)) {
      if (field.id === 1 && field.wire === 0) found.set('timestamp', time(field.number));
      else if (field.id === 2 && field.wire === 2) metrics.push(metric(field.bytes, aliases, DEPTH));
      else if (field.id === 3 && field.wire === 0) found.set('seq', whole(field.number));
      else if (field.id === 4 && field.wire === 2) found.set('uuid', text(field));
      else if (field.id === 5 && field.wire === 2) found.set('body', field.bytes.slice());
      else throw new Undecodable(`field ${field.id} is not in a payload of Sparkplug B`);
    }
  } catch (error) {
    if (!cut || metrics.length === 0) throw error;
  }
  found.set('metrics', metrics);
  return found;
}

const DATA_TYPES = [
  ...['Unknown', 'Int8', 'Int16', 'Int32', 'Int64', 'UInt8', 'UInt16', 'UInt32', 'UInt64', 'Float', 'Double'],
  ...['Boolean', 'String', 'DateTime', 'Text', 'UUID', 'DataSet', 'Bytes', 'File', 'Template', 'PropertySet'],
  ...['PropertySetList', 'Int8Array', 'Int16Array', 'Int32Array', 'Int64Array', 'UInt8Array', 'UInt16Array'],
  ...['UInt32Array', 'UInt64Array', 'FloatArray', 'DoubleArray', 'BooleanArray', 'StringArray'],
  'DateTimeArray',
];

function metric(bytes: Uint8Array, aliases: Aliases, depth: number): Map<Value, Value> {
  if (depth === 0) throw new Undecodable('the value is too deep');
  const fields = [...wireFields(bytes)];
  const type = Number(fields.find((field) => field.id === 4)?.number ?? 0n);
  const found = new Map<Value, Value>();
  for (const field of fields) {
    switch (field.id) {
      case 1:
        found.set('name', text(field));
        break;
      case 2: {
        const alias = whole(field.number);
        const name = aliases.name(alias);
        if (name !== undefined && !found.has('name')) found.set('name', name);
        found.set('alias', alias);
        break;
      }
      case 3:
        found.set('timestamp', time(field.number));
        break;
      case 4:
        found.set('type', DATA_TYPES[type] ?? type);
        break;
      case 5:
        found.set('historical', field.number !== 0n);
        break;
      case 6:
        found.set('transient', field.number !== 0n);
        break;
      case 7:
        if (field.number !== 0n) found.set('value', null);
        break;
      case 8:
        found.set('metadata', metadata(field.bytes));
        break;
      case 9:
        found.set('properties', properties(field.bytes, depth - 1));
        break;
      case 17:
        found.set('value', dataSet(field.bytes));
        break;
      case 18:
        found.set('value', template(field.bytes, aliases, depth - 1));
        break;
      default:
        if (field.id < 10 || field.id > 16) throw new Undecodable(`field ${field.id} is not in a metric`);
        found.set('value', valueOf(field, field.id - 9, type));
    }
  }
  return found;
}

/** A value whose place among "int, long, float, double, boolean, string, bytes" is `place`. */
function valueOf(field: WireField, place: number, type: number): Value {
  switch (place) {
    case 1:
      // Small signed numbers are in two's complement.
      if (type === 1) return Number(BigInt.asIntN(8, field.number));
      if (type === 2) return Number(BigInt.asIntN(16, field.number));
      if (type === 3) return Number(BigInt.asIntN(32, field.number));
      return Number(BigInt.asUintN(32, field.number));
    case 2:
      if (type === 13) return time(field.number);
      return type === 4 ? signed64(field.number) : whole(field.number);
    case 3:
      return float(field.bytes);
    case 4:
      return double(field.bytes);
    case 5:
      return field.number !== 0n;
    case 6:
      return text(field);
    default:
      return field.bytes.slice();
  }
}

function metadata(bytes: Uint8Array): Map<Value, Value> {
  const NAMES = [
    ...['multi_part', 'content_type', 'size', 'seq'],
    ...['file_name', 'file_type', 'md5', 'description'],
  ];
  const found = new Map<Value, Value>();
  for (const field of wireFields(bytes)) {
    const name = NAMES[field.id - 1];
    if (name === undefined) continue;
    found.set(
      name,
      field.id === 1 ? field.number !== 0n : field.wire === 0 ? whole(field.number) : text(field),
    );
  }
  return found;
}

function properties(bytes: Uint8Array, depth: number): Map<Value, Value> {
  if (depth <= 0) throw new Undecodable('the value is too deep');
  const keys: string[] = [];
  const values: Value[] = [];
  for (const field of wireFields(bytes)) {
    if (field.id === 1) keys.push(text(field));
    else if (field.id === 2) values.push(property(field.bytes, depth - 1));
  }
  return new Map<Value, Value>(keys.map((key, index) => [key, values[index]]));
}

function property(bytes: Uint8Array, depth: number): Value {
  if (depth <= 0) throw new Undecodable('the value is too deep');
  const fields = [...wireFields(bytes)];
  const type = Number(fields.find((field) => field.id === 1)?.number ?? 0n);
  let value: Value = null;
  for (const field of fields) {
    if (field.id >= 3 && field.id <= 8) value = valueOf(field, field.id - 2, type);
    else if (field.id === 9) value = properties(field.bytes, depth - 1);
    else if (field.id === 10)
      value = [...wireFields(field.bytes)].map((one) => properties(one.bytes, depth - 1));
  }
  return value;
}

function dataSet(bytes: Uint8Array): Map<Value, Value> {
  const columns: string[] = [];
  const types: number[] = [];
  const rows: Value[] = [];
  for (const field of wireFields(bytes)) {
    if (field.id === 2) columns.push(text(field));
    else if (field.id === 3 && field.wire === 0) types.push(Number(field.number));
    else if (field.id === 4)
      rows.push(
        [...wireFields(field.bytes)].map((element, index) => {
          const [one] = wireFields(element.bytes);
          return one === undefined ? null : valueOf(one, one.id, types[index] ?? 0);
        }),
      );
  }
  return new Map<Value, Value>([
    ['columns', columns],
    ['types', types.map((type) => DATA_TYPES[type] ?? type)],
    ['rows', rows],
  ]);
}

function template(bytes: Uint8Array, aliases: Aliases, depth: number): Map<Value, Value> {
  const found = new Map<Value, Value>();
  const metrics: Value[] = [];
  const parameters = new Map<Value, Value>();
  for (const field of wireFields(bytes)) {
    if (field.id === 1) found.set('version', text(field));
    else if (field.id === 2) metrics.push(metric(field.bytes, aliases, depth));
    else if (field.id === 3) {
      const parts = [...wireFields(field.bytes)];
      const name = parts.find((part) => part.id === 1);
      const type = Number(parts.find((part) => part.id === 2)?.number ?? 0n);
      const value = parts.find((part) => part.id >= 3);
      parameters.set(name ? text(name) : '', value ? valueOf(value, value.id - 2, type) : null);
    } else if (field.id === 4) found.set('template', text(field));
    else if (field.id === 5) found.set('definition', field.number !== 0n);
  }
  if (parameters.size > 0) found.set('parameters', parameters);
  found.set('metrics', metrics);
  return found;
}

function text(field: WireField): string {
  return new TextDecoder().decode(field.bytes);
}

/** Milliseconds since 1970 as a time, if there is such a time. */
function time(milliseconds: bigint): Value {
  const at = new Date(Number(milliseconds));
  return Number.isNaN(at.getTime()) ? whole(milliseconds) : at.toISOString();
}
