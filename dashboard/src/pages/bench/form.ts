// A scenario as a form, and as the text of its file. What the form has no field for, it names, and leaves alone.
import { type TomlTable, type TomlValue, isTable, parseToml, quoted } from './toml';

export interface Group {
  name: string;
  clients: string;
  /** What its clients do. */
  does: 'publish' | 'subscribe' | 'both' | 'idle';
  topic: string;
  rate: string;
  payload: string;
  publishQos: string;
  retain: boolean;
  filter: string;
  subscribeQos: string;
}

export interface Limit {
  what: string;
  condition: string;
}

export interface Form {
  /** Keys of the file that the form keeps and has no field for. */
  kept: [key: string, value: string | number][];
  version: string;
  rampSpan: string;
  warmupSpan: string;
  holdSpan: string;
  drainSpan: string;
  groups: Group[];
  limits: Limit[];
}

/** A form, or why the text does not fit into one. */
export type FormOfText = { form: Form } | { left: string[] } | { line: number };

const GROUP: Omit<Group, 'name'> = {
  clients: '10',
  does: 'publish',
  topic: 'bench/{run}/{i}',
  rate: '1/s',
  payload: '64B',
  publishQos: '1',
  retain: false,
  filter: 'bench/{run}/#',
  subscribeQos: '1',
};

export function newForm(): Form {
  return {
    kept: [],
    version: '5',
    rampSpan: '',
    warmupSpan: '2s',
    holdSpan: '30s',
    drainSpan: '5s',
    groups: [
      { ...GROUP, name: 'publishers', clients: '100' },
      { ...GROUP, name: 'subscribers', clients: '1', does: 'subscribe' },
    ],
    limits: [
      { what: 'e2e.p99', condition: '< 50ms' },
      { what: 'delivered', condition: '== 100%' },
    ],
  };
}

/** A group with a name that no other one has. */
export function newGroup(groups: readonly Group[]): Group {
  let number = groups.length + 1;
  while (groups.some((group) => group.name === `group-${number}`)) number += 1;
  return { ...GROUP, name: `group-${number}` };
}

const bare = (name: string) => (/^[A-Za-z0-9_-]+$/.test(name) ? name : quoted(name));
/** A number, or a text in quotes. */
const scalar = (text: string) => (/^\d[\d_]*(\.\d+)?$/.test(text.trim()) ? text.trim() : quoted(text.trim()));

export function tomlOf(form: Form): string {
  const lines = form.kept.map(
    ([key, value]) => `${key} = ${typeof value === 'number' ? value : quoted(value)}`,
  );
  if (form.version !== '') lines.push(`version = ${form.version === '5' ? '5' : quoted(form.version)}`);
  const stages = [
    ['ramp', form.rampSpan],
    ['warmup', form.warmupSpan],
    ['hold', form.holdSpan],
    ['drain', form.drainSpan],
  ].filter(([, span]) => span?.trim() !== '');
  if (stages.length > 0)
    lines.push(
      `stages = [${stages.map(([name, span]) => quoted(`${name} ${span?.replace(/\s+/g, '')}`)).join(', ')}]`,
    );
  for (const group of form.groups) {
    lines.push('', `[groups.${bare(group.name)}]`, `clients = ${scalar(group.clients)}`);
    if (group.does === 'publish' || group.does === 'both')
      lines.push(
        `publish = { topic = ${quoted(group.topic)}, rate = ${scalar(group.rate)}, qos = ${scalar(group.publishQos)}${group.retain ? ', retain = true' : ''}, payload = ${scalar(group.payload)} }`,
      );
    if (group.does === 'subscribe' || group.does === 'both')
      lines.push(`subscribe = { filter = ${quoted(group.filter)}, qos = ${scalar(group.subscribeQos)} }`);
  }
  const limits = form.limits.filter((limit) => (limit.what + limit.condition).trim() !== '');
  if (limits.length > 0) {
    lines.push('', '[thresholds]');
    for (const limit of limits)
      lines.push(`${quoted(limit.what.trim())} = ${quoted(limit.condition.trim())}`);
  }
  return `${lines.join('\n').trim()}\n`;
}

/** Takes keys from a table and remembers which it did not take. */
class Taking {
  readonly left: string[] = [];

  take(
    table: TomlTable,
    where: string,
    fields: Readonly<Record<string, (value: TomlValue) => boolean>>,
  ): void {
    for (const [key, value] of Object.entries(table))
      if (fields[key]?.(value) !== true) this.left.push(where === '' ? key : `${where}.${key}`);
  }
}

const text = (value: TomlValue): string | null =>
  typeof value === 'string' ? value : typeof value === 'number' ? String(value) : null;

function into<Key extends string>(target: Record<Key, string>, key: Key): (value: TomlValue) => boolean {
  return (value) => {
    const found = text(value);
    if (found === null) return false;
    target[key] = found;
    return true;
  };
}

function groupOf(name: string, table: TomlTable, taking: Taking): Group {
  const group: Group = { ...GROUP, name, rate: '1/s', payload: '16B', publishQos: '0', subscribeQos: '0' };
  const found = { publish: false, subscribe: false };
  const where = `groups.${name}`;
  taking.take(table, where, {
    clients: into(group, 'clients'),
    publish: (value) => {
      if (!isTable(value)) return false;
      found.publish = true;
      taking.take(value, `${where}.publish`, {
        topic: into(group, 'topic'),
        rate: into(group, 'rate'),
        payload: into(group, 'payload'),
        qos: into(group, 'publishQos'),
        retain: (flag) => {
          group.retain = flag === true;
          return typeof flag === 'boolean';
        },
      });
      return true;
    },
    subscribe: (value) => {
      if (!isTable(value)) return false;
      found.subscribe = true;
      taking.take(value, `${where}.subscribe`, {
        filter: into(group, 'filter'),
        qos: into(group, 'subscribeQos'),
      });
      return true;
    },
  });
  group.does = found.publish
    ? found.subscribe
      ? 'both'
      : 'publish'
    : found.subscribe
      ? 'subscribe'
      : 'idle';
  return group;
}

const KEPT = ['name', 'alias', 'summary', 'target', 'keep_alive', 'connect_rate'] as const;

/** The form of a text, if it has a place for all that the text says. Comments are not kept. */
export function formOf(source: string): FormOfText {
  let table: TomlTable;
  try {
    table = parseToml(source);
  } catch (error) {
    return { line: error instanceof Error && 'line' in error ? Number(error.line) : 1 };
  }
  const taking = new Taking();
  const form: Form = {
    kept: [],
    version: '',
    rampSpan: '',
    warmupSpan: '',
    holdSpan: '',
    drainSpan: '',
    groups: [],
    limits: [],
  };
  const keep = (key: string) => (value: TomlValue) => {
    if (typeof value !== 'string' && typeof value !== 'number') return false;
    form.kept.push([key, value]);
    return true;
  };
  taking.take(table, '', {
    ...Object.fromEntries(KEPT.map((key) => [key, keep(key)])),
    version: (value) => {
      form.version = (text(value) ?? '').replace(/^5\.0$/, '5');
      return form.version !== '';
    },
    stages: (value) => Array.isArray(value) && value.every((stage) => takeStage(form, stage)),
    groups: (value) => {
      if (!isTable(value)) return false;
      for (const [name, group] of Object.entries(value)) {
        if (!isTable(group)) return false;
        form.groups.push(groupOf(name, group, taking));
      }
      return true;
    },
    thresholds: (value) => {
      if (!isTable(value)) return false;
      for (const [what, condition] of Object.entries(value)) {
        if (typeof condition !== 'string') return false;
        form.limits.push({ what, condition });
      }
      return true;
    },
  });
  return taking.left.length > 0 ? { left: taking.left } : { form };
}

function takeStage(form: Form, stage: TomlValue): boolean {
  if (typeof stage !== 'string') return false;
  const found = /^(ramp|warmup|hold|drain)\s+(\S+)$/.exec(stage.trim());
  const span = found?.[2];
  if (!found || span === undefined) return false;
  const name = found[1];
  if (name === 'ramp') form.rampSpan = span;
  else if (name === 'warmup') form.warmupSpan = span;
  else if (name === 'hold') form.holdSpan = span;
  else form.drainSpan = span;
  return true;
}
