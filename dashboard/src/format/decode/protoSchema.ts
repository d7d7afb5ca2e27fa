// Schemas of Protocol Buffers (.proto files). Loaded when a schema is given: it brings its library, of which only
// the parser is used. Its coders are made with generated code, which the policy of the page forbids.
import protobuf from 'protobufjs';
import { SCHEMA_MOST } from './limits';
import type { Kind, Scalar, Shape, ShapeField } from './protobuf';

/** A schema that was read. */
export interface ProtoSchema {
  /** The names of its messages, in the order of the text. */
  messages: readonly string[];
  shape: (message: string) => Shape | null;
}

/** Reads a schema; an error says what is wrong with it. */
export function readSchema(text: string): ProtoSchema {
  if (text.length > SCHEMA_MOST) throw new Error(`it has more than ${SCHEMA_MOST / 1024} KiB`);
  const { root, imports } = protobuf.parse(text, new protobuf.Root(), { keepCase: true });
  for (const name of imports ?? []) {
    const common = protobuf.common.get(name);
    if (common === null) throw new Error(`it imports "${name}": put that text in here, too`);
    if (common.nested !== undefined) root.addJSON(common.nested);
  }
  root.resolveAll();
  const found: protobuf.Type[] = [];
  collect(root, found);
  const types = new Map(found.map((type) => [nameOf(type), type]));
  const shapes = new Map<protobuf.Type, Shape>();
  const shapeOf = (type: protobuf.Type): Shape => {
    const before = shapes.get(type);
    if (before) return before;
    const shape: Shape = {
      name: nameOf(type),
      fields: new Map(type.fieldsArray.map((field) => [field.id, fieldOf(field, shapeOf)])),
    };
    shapes.set(type, shape);
    return shape;
  };
  return {
    messages: [...types.keys()].filter((name) => !name.startsWith('google.protobuf.')),
    shape: (message) => {
      const type = types.get(message);
      return type === undefined ? null : shapeOf(type);
    },
  };
}

function nameOf(type: protobuf.ReflectionObject): string {
  return type.fullName.replace(/^\./, '');
}

function collect(space: protobuf.NamespaceBase, found: protobuf.Type[]): void {
  for (const one of space.nestedArray) {
    if (one instanceof protobuf.Type) found.push(one);
    if (one instanceof protobuf.Namespace) collect(one, found);
  }
}

function fieldOf(field: protobuf.Field, shapeOf: (type: protobuf.Type) => Shape): ShapeField {
  const kind = kindOf(field.type, field.resolvedType, shapeOf);
  return field instanceof protobuf.MapField
    ? {
        name: field.name,
        repeated: false,
        kind: { is: 'map', key: kindOf(field.keyType, null, shapeOf), value: kind },
      }
    : { name: field.name, repeated: field.repeated, kind };
}

const SCALARS: readonly Scalar[] = [
  'double',
  'float',
  'int32',
  'int64',
  'uint32',
  'uint64',
  'sint32',
  'sint64',
  'fixed32',
  'fixed64',
  'sfixed32',
  'sfixed64',
  'bool',
  'string',
  'bytes',
];

function kindOf(
  name: string,
  resolved: protobuf.ReflectionObject | null,
  shapeOf: (type: protobuf.Type) => Shape,
): Kind {
  if (resolved instanceof protobuf.Type) return { is: 'message', shape: () => shapeOf(resolved) };
  if (resolved instanceof protobuf.Enum)
    return {
      is: 'enum',
      names: new Map(Object.entries(resolved.values).map(([text, value]) => [value, text])),
    };
  const scalar = SCALARS.find((one) => one === name);
  if (scalar === undefined) throw new Error(`it does not say what ${name} is`);
  return { is: 'scalar', scalar };
}
