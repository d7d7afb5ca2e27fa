// What an import would do, as far as the names in the file tell it. The broker reads the file itself.
import type { Schemas } from '../../../api/client';

export const FORMATS = ['mosquitto', 'emqx-csv', 'emqx-json', 'jsonl'] as const;
export type Format = (typeof FORMATS)[number];
export type Algorithm = 'sha256' | 'sha512' | 'bcrypt' | 'pbkdf2-sha1' | 'pbkdf2-sha256' | 'pbkdf2-sha512';
export const ALGORITHMS: readonly Algorithm[] = [
  'sha256',
  'sha512',
  'bcrypt',
  'pbkdf2-sha1',
  'pbkdf2-sha256',
  'pbkdf2-sha512',
];

/** The form that a file seems to have. */
export function formatOf(name: string, text: string): Format {
  const start = text.trimStart();
  if (start.startsWith('[')) return 'emqx-json';
  if (start.startsWith('{')) return 'jsonl';
  if (name.endsWith('.csv') || /^[^\n:]*,/.test(start)) return 'emqx-csv';
  return 'mosquitto';
}

/** The names of the users in a file; null if it does not have this form. */
export function namesIn(format: Format, text: string): string[] | null {
  switch (format) {
    case 'mosquitto':
      return lines(text)
        .filter((line) => !line.startsWith('#'))
        .map((line) => line.split(':')[0] ?? '')
        .filter((name) => name !== '');
    case 'emqx-csv':
      return csvNames(text);
    case 'emqx-json':
      return jsonNames(text);
    case 'jsonl':
      return jsonlNames(text);
  }
}

/** What the import would add and replace. */
export function planned(names: readonly string[], there: ReadonlySet<string>) {
  const wanted = [...new Set(names)];
  return {
    added: wanted.filter((name) => !there.has(name)),
    replaced: wanted.filter((name) => there.has(name)),
  };
}

export type Plan = ReturnType<typeof planned>;
export type Done = Schemas['UsersImported'];

function lines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function csvNames(text: string): string[] | null {
  const [head, ...rows] = lines(text);
  const column = (head ?? '')
    .split(',')
    .findIndex((name) => ['user_id', 'username'].includes(name.replaceAll('"', '').trim()));
  if (column < 0) return null;
  return rows
    .map((row) => (row.split(',')[column] ?? '').replace(/^"|"$/g, ''))
    .filter((name) => name !== '');
}

function field(value: unknown, names: readonly string[]): string | null {
  if (typeof value !== 'object' || value === null) return null;
  const fields = new Map<string, unknown>(Object.entries(value));
  for (const name of names) {
    const found = fields.get(name);
    if (typeof found === 'string' && found !== '') return found;
  }
  return null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function jsonNames(text: string): string[] | null {
  const list = parsed(text);
  if (!Array.isArray(list)) return null;
  return list
    .map((one) => field(one, ['user_id', 'username']))
    .filter((name): name is string => name !== null);
}

function jsonlNames(text: string): string[] | null {
  const found: string[] = [];
  for (const line of lines(text)) {
    const value = parsed(line);
    if (value === undefined) return null;
    const name = field(value, ['user']);
    if (name !== null) found.push(name);
  }
  return found;
}
