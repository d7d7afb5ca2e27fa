// What the JSON Schema of the configuration says about a key, for the field that changes it.

/** How a key is written in a form. */
export type Field =
  | { kind: 'boolean' }
  | { kind: 'choice'; choices: readonly { value: string; note: string }[] }
  | { kind: 'integer'; least: number | null; most: number | null }
  | { kind: 'list' }
  | { kind: 'text'; numbers: boolean; booleans: boolean };

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type Node = Readonly<Record<string, unknown>>;

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The node of a key; tables with names of one's choice have one description for all names. */
export function nodeOf(schema: unknown, key: string): Node | null {
  let node: unknown = schema;
  for (const part of key.split('.')) {
    if (!isNode(node)) return null;
    const properties: unknown = node['properties'];
    const named: unknown = isNode(properties) ? properties[part] : undefined;
    node = named ?? node['additionalProperties'];
  }
  return isNode(node) ? node : null;
}

/** The group of a key: its table, or the one that was named, as `listeners.mqtt`. */
export function groupOf(schema: unknown, key: string): string {
  const parts = key.split('.');
  const [first = ''] = parts;
  const table = nodeOf(schema, first);
  const named = table !== null && isNode(table['additionalProperties']) && parts.length > 2;
  return named ? parts.slice(0, 2).join('.') : first;
}

export function fieldOf(schema: unknown, key: string, value: unknown): Field {
  const node = nodeOf(schema, key);
  const type = node?.['type'];
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  const choices = node === null ? null : choicesOf(node['oneOf']);
  if (choices) return { kind: 'choice', choices };
  if (types.length === 1 && types[0] === 'boolean') return { kind: 'boolean' };
  if (types.length === 1 && types[0] === 'integer') {
    const least = node?.['minimum'];
    const most = node?.['maximum'];
    return {
      kind: 'integer',
      least: typeof least === 'number' ? least : null,
      most: typeof most === 'number' ? most : null,
    };
  }
  if (Array.isArray(value) || types[0] === 'array') return { kind: 'list' };
  return {
    kind: 'text',
    numbers: types.includes('integer') || types.includes('number'),
    booleans: types.includes('boolean'),
  };
}

function choicesOf(oneOf: unknown): { value: string; note: string }[] | null {
  if (!Array.isArray(oneOf)) return null;
  const found: { value: string; note: string }[] = [];
  for (const one of oneOf) {
    if (!isNode(one) || typeof one['const'] !== 'string') return null;
    found.push({
      value: one['const'],
      note: typeof one['description'] === 'string' ? one['description'] : '',
    });
  }
  return found;
}

/** A value as the text of its field. */
export function written(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (Array.isArray(value)) return value.map(written).join('\n');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The value of a text; what the broker refuses is told by its plan. */
export function readField(field: Field, text: string): Json {
  const plain = text.trim();
  switch (field.kind) {
    case 'boolean':
      return plain === 'true';
    case 'choice':
      return plain;
    case 'integer':
      return numberOf(plain) ?? plain;
    case 'list':
      return plain
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== '');
    case 'text':
      if (field.numbers) {
        const number = numberOf(plain);
        if (number !== null) return number;
      }
      if (field.booleans && (plain === 'true' || plain === 'false')) return plain === 'true';
      return plain;
  }
}

/** Digits, which may be grouped as in TOML or by spaces. */
function numberOf(text: string): number | null {
  return /^-?\d[\d_ \u202f]*$/.test(text) ? Number(text.replace(/[_ \u202f]/g, '')) : null;
}

/** What a key is for, without the default and its reason, which have a place of their own. */
export function purpose(description: string): string {
  const text = description.replace(/\s+/g, ' ');
  const at = text.search(/ ?Default `/);
  return (at > 0 ? text.slice(0, at) : text).trim();
}

/** The default and its reason, as the description has them: "`10_000`: at a message a second nearly three hours." */
export function reasonOfDefault(description: string): string {
  return /Default (`.*)$/s.exec(description.replace(/\s+/g, ' '))?.[1] ?? '';
}

export const equal = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
