// A figure of the table for one client, topic, group or run.
import { address } from '../../api/client';
import { commandOf } from '../same';

interface Source {
  promql?: string;
  path: string;
  query?: Readonly<Record<string, string>>;
  command: string;
}

/** The address of the interface, relative to the page. */
export function addressFor(source: Source, id: string): string {
  const query: Record<string, string> = {};
  for (const [name, value] of Object.entries(source.query ?? {}))
    query[name] = value.replace('{id}', () => id);
  return address(source.path, { id }, query);
}

/** The question for Prometheus, if it has this figure. */
export function promqlFor({ promql }: Source, id: string): string | null {
  return promql?.replace('{id}', () => id.replace(/[\\"]/g, '\\$&')) ?? null;
}

/** The command; the identifier is one word of it, whatever letters it has. */
export function commandFor(source: Source, id: string): string {
  return commandOf(source.command.split(' ').map((word) => word.replace('{id}', () => id)));
}
