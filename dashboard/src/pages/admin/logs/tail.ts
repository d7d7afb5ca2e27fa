// The lines of the log that the page has: bounded, and honest about what is missing.
import type { Schemas } from '../../../api/client';

export type Line = Schemas['LogLine'];
export const LEVELS = ['error', 'warn', 'info', 'debug', 'trace'] as const;
export type Level = (typeof LEVELS)[number];

/** Lines that the page keeps; the broker has about 4,000. */
export const KEPT = 4000;

/** A line, or a note of lines that were forgotten before they could be sent. */
export type Row = { kind: 'line'; key: string; line: Line } | { kind: 'missed'; key: string; events: number };

/** Rows with newer ones before them; those beyond the limit are forgotten and counted. */
export function added(
  rows: readonly Row[],
  newer: readonly Row[],
  most = KEPT,
): { rows: Row[]; forgotten: number } {
  const all = [...[...newer].reverse(), ...rows];
  return { rows: all.slice(0, most), forgotten: Math.max(0, all.length - most) };
}

export const lineRow = (line: Line): Row => ({ kind: 'line', key: `line ${line.number}`, line });

/** Fields as the broker prints them: name=value, quoted if there are spaces. */
export function fieldsOf(line: Line): { name: string; value: string }[] {
  return Object.entries(line.fields)
    .map(([name, value]) => ({ name, value }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** A line as the broker prints it. */
export function printed(line: Line): string {
  const fields = fieldsOf(line)
    .map(({ name, value }) => ` ${name}=${/^[\w.:/@-]+$/.test(value) ? value : JSON.stringify(value)}`)
    .join('');
  return `${line.at} ${line.level.toUpperCase().padStart(5)} ${line.target}: ${line.text}${fields}`;
}

/** The page of a thing that a field names; null if there is none. */
export function placeOf(name: string, value: string): string[] | null {
  if (name === 'client_id' && value !== '') return ['clients', value];
  return name === 'topic' && value !== '' ? ['topics', ...value.split('/')] : null;
}
