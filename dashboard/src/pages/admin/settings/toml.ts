// Differences of the configuration as TOML.

export interface Difference {
  key: string;
  before?: unknown;
  after?: unknown;
}

/** A line of a difference. */
export interface DiffLine {
  kind: 'table' | 'add' | 'del' | 'gap';
  text: string;
}

const BARE = /^[A-Za-z0-9_-]+$/;
const quoted = (name: string) => (BARE.test(name) ? name : JSON.stringify(name));

/** A value as TOML writes it; numbers have groups of three digits. */
export function tomlValue(value: unknown): string {
  if (typeof value === 'number')
    return Number.isInteger(value) ? value.toString().replace(/\B(?=(\d{3})+$)/g, '_') : value.toString();
  if (typeof value === 'boolean') return value.toString();
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(', ')}]`;
  if (typeof value === 'object' && value !== null)
    return `{ ${Object.entries(value)
      .map(([name, one]) => `${quoted(name)} = ${tomlValue(one)}`)
      .join(', ')} }`;
  return JSON.stringify(value ?? '');
}

function split(key: string): { table: string; name: string } {
  const parts = key.split('.');
  const name = quoted(parts.pop() ?? '');
  return { table: parts.map(quoted).join('.'), name };
}

/** Removed and added lines below the heads of their tables. */
export function diffLines(differences: readonly Difference[]): DiffLine[] {
  const lines: DiffLine[] = [];
  let last: string | null = null;
  for (const { key, before, after } of differences) {
    const { table, name } = split(key);
    if (table !== last) {
      if (last !== null) lines.push({ kind: 'gap', text: '' });
      if (table !== '') lines.push({ kind: 'table', text: `[${table}]` });
      last = table;
    }
    if (before !== null && before !== undefined)
      lines.push({ kind: 'del', text: `${name} = ${tomlValue(before)}` });
    if (after !== null && after !== undefined)
      lines.push({ kind: 'add', text: `${name} = ${tomlValue(after)}` });
  }
  return lines;
}

/** The values after a change, to be put into a file. */
export function asToml(differences: readonly Difference[]): string {
  return (
    diffLines(differences)
      .filter((line) => line.kind !== 'del')
      .map((line) => line.text)
      .join('\n') + '\n'
  );
}
