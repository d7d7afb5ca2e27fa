// The operations of the interface, as its OpenAPI document describes them.

type Node = Readonly<Record<string, unknown>>;
const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export interface Parameter {
  name: string;
  in: 'path' | 'query';
  required: boolean;
  about: string;
  kind: 'text' | 'boolean' | 'integer' | 'choice' | 'list';
  choices: readonly string[];
}

/** A field of a body, or of an answer. */
export interface BodyField {
  name: string;
  type: string;
  required: boolean;
  about: string;
}

export interface Body {
  type: string;
  required: boolean;
  fields: readonly BodyField[];
  /** What a form begins with. */
  example: string;
}

export interface Operation {
  id: string;
  method: string;
  path: string;
  summary: string;
  group: string;
  parameters: readonly Parameter[];
  body: Body | null;
  answers: readonly string[];
  /** null: it needs no login. */
  scopes: readonly string[] | null;
}

export interface Group {
  name: string;
  about: string;
  operations: Operation[];
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

/** The operations in groups, in the order of the document. */
export function groupsOf(document: unknown): Group[] {
  if (!isNode(document)) return [];
  const groups = new Map<string, Group>();
  for (const tag of list(document['tags']))
    if (isNode(tag)) {
      const name = text(tag['name']);
      groups.set(name, { name, about: text(tag['description']), operations: [] });
    }
  const paths = isNode(document['paths']) ? document['paths'] : {};
  for (const [path, methods] of Object.entries(paths)) {
    if (!isNode(methods)) continue;
    for (const method of METHODS) {
      const found = methods[method];
      if (!isNode(found)) continue;
      const operation = operationOf(document, path, method, found);
      const group = groups.get(operation.group) ?? { name: operation.group, about: '', operations: [] };
      group.operations.push(operation);
      groups.set(operation.group, group);
    }
  }
  return [...groups.values()].filter((group) => group.operations.length > 0);
}

function operationOf(document: Node, path: string, method: string, node: Node): Operation {
  const answer = Object.entries(isNode(node['responses']) ? node['responses'] : {}).find(([status]) =>
    status.startsWith('2'),
  )?.[1];
  const content = isNode(answer) && isNode(answer['content']) ? answer['content'] : {};
  return {
    id: text(node['operationId']) || `${method} ${path}`,
    method: method.toUpperCase(),
    path,
    summary: text(node['summary']),
    group: text(list(node['tags'])[0]),
    parameters: list(node['parameters']).flatMap((one) => parameterOf(one) ?? []),
    body: bodyOf(document, node['requestBody']),
    answers: Object.keys(content),
    scopes: scopesOf(node['security']),
  };
}

function scopesOf(security: unknown): string[] | null {
  const all = list(security);
  if (all.length === 0) return null;
  for (const one of all)
    if (isNode(one) && Array.isArray(one['api_key'])) return list(one['api_key']).map(text);
  return [];
}

function parameterOf(node: unknown): Parameter | null {
  if (!isNode(node)) return null;
  const place = node['in'];
  if (place !== 'path' && place !== 'query') return null;
  const schema = isNode(node['schema']) ? node['schema'] : {};
  const choices = list(schema['enum']).map(text);
  const type = schema['type'];
  return {
    name: text(node['name']),
    in: place,
    required: node['required'] === true,
    about: text(node['description']),
    kind:
      choices.length > 0
        ? 'choice'
        : type === 'boolean'
          ? 'boolean'
          : type === 'integer'
            ? 'integer'
            : type === 'array'
              ? 'list'
              : 'text',
    choices,
  };
}

/** A schema behind its reference; of several the first that is not null. */
function resolved(document: Node, node: unknown, depth = 0): Node {
  if (!isNode(node) || depth > 8) return {};
  const reference = node['$ref'];
  if (typeof reference === 'string') {
    let found: unknown = document;
    for (const part of reference.replace(/^#\//, '').split('/')) found = isNode(found) ? found[part] : null;
    return resolved(document, found, depth + 1);
  }
  for (const key of ['oneOf', 'anyOf']) {
    const first = list(node[key]).find((one) => isNode(one) && one['type'] !== 'null');
    if (first !== undefined) return resolved(document, first, depth + 1);
  }
  return node;
}

function bodyOf(document: Node, node: unknown): Body | null {
  if (!isNode(node) || !isNode(node['content'])) return null;
  const [type, media] = Object.entries(node['content'])[0] ?? [];
  if (type === undefined || !isNode(media)) return null;
  const schema = resolved(document, media['schema']);
  const properties = isNode(schema['properties']) ? schema['properties'] : {};
  const required = new Set(list(schema['required']).map(text));
  const fields = Object.entries(properties).map(([name, one]) => ({
    name,
    type: typeName(document, one),
    required: required.has(name),
    about: isNode(one) ? text(one['description']) : '',
  }));
  const json = type === 'application/json';
  return {
    type,
    required: node['required'] === true,
    fields,
    example: json ? JSON.stringify(exampleOf(document, schema, 0), null, 2) : '',
  };
}

function typeName(document: Node, node: unknown): string {
  const schema = resolved(document, node);
  const type = schema['type'];
  const names = (Array.isArray(type) ? type : [type]).map(text).filter((one) => one !== '' && one !== 'null');
  if (names[0] === 'array') return `[${typeName(document, schema['items'])}]`;
  return names.join(' | ') || (list(schema['enum']).length > 0 ? 'string' : 'any');
}

/** The smallest body: what is required, with values that say their type. */
function exampleOf(document: Node, node: unknown, depth: number): unknown {
  const schema = resolved(document, node);
  const choices = list(schema['enum']);
  if (choices.length > 0) return choices[0];
  const type: unknown = Array.isArray(schema['type'])
    ? schema['type'].find((one) => one !== 'null')
    : schema['type'];
  if (type === 'object' && depth < 4) {
    const properties = isNode(schema['properties']) ? schema['properties'] : {};
    const required = list(schema['required']).map(text);
    // Without a required field, those that have a default show what the body looks like.
    if (required.length === 0)
      return Object.fromEntries(
        Object.entries(properties).flatMap(([name, one]) =>
          isNode(one) && one['default'] !== null && one['default'] !== undefined
            ? [[name, one['default']]]
            : [],
        ),
      );
    return Object.fromEntries(
      required.map((name) => [name, exampleOf(document, properties[name], depth + 1)]),
    );
  }
  if (type === 'array') return [];
  if (type === 'integer' || type === 'number') {
    const least = schema['minimum'];
    return typeof least === 'number' ? least : 0;
  }
  if (type === 'boolean') return false;
  return type === 'object' ? {} : '';
}

/** Whether it changes nothing: it reads, or asks what would be. */
export function isRead(operation: Operation): boolean {
  if (operation.method === 'GET') return true;
  const { scopes } = operation;
  return scopes !== null && scopes.length > 0 && scopes.every((scope) => scope.endsWith(':read'));
}

/** Operations that have all words in their path, summary or name. */
export function matching(groups: readonly Group[], words: string): Group[] {
  const wanted = words
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  return groups
    .map((group) => ({
      ...group,
      operations: group.operations.filter((one) => {
        const all = `${one.method} ${one.path} ${one.summary} ${one.id}`.toLowerCase();
        return wanted.every((word) => all.includes(word));
      }),
    }))
    .filter((group) => group.operations.length > 0);
}

/** Values of a form, by the names of parameters. */
export type Values = Readonly<Record<string, string>>;

/** The parameters of a request. Lists have a value in each line; what is empty is left out. */
export function filled(
  operation: Operation,
  values: Values,
): { path: Record<string, string>; query: Record<string, string | string[]>; missing: string[] } {
  const path: Record<string, string> = {};
  const query: Record<string, string | string[]> = {};
  const missing: string[] = [];
  for (const one of operation.parameters) {
    const value = values[one.name] ?? '';
    if (value === '') {
      if (one.required) missing.push(one.name);
      if (one.in === 'path') path[one.name] = `{${one.name}}`;
    } else if (one.in === 'path') path[one.name] = value;
    else if (one.kind === 'list')
      query[one.name] = value
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== '');
    else query[one.name] = value;
  }
  return { path, query, missing };
}
