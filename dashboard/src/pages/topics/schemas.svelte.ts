// Schemas of Protobuf that this browser keeps, each for a filter of topics.
import { SCHEMA_MOST } from '../../format/decode/limits';
import { isFilter, matches } from '../../format/topicFilter';

/** A schema, and the message of it that payloads of these topics are. */
export interface KeptSchema {
  filter: string;
  message: string;
  text: string;
}

const KEY = 'thrum-proto-schemas';
/** Most schemas that are kept. */
export const SCHEMAS_MOST = 32;

/** What a browser has kept, without what is no schema. */
export function parsed(text: string | null): KeptSchema[] {
  try {
    const found: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(found) ? found.filter(isKept).slice(0, SCHEMAS_MOST) : [];
  } catch {
    return [];
  }
}

function isKept(value: unknown): value is KeptSchema {
  return (
    typeof value === 'object' &&
    value !== null &&
    'filter' in value &&
    typeof value.filter === 'string' &&
    isFilter(value.filter) &&
    'message' in value &&
    typeof value.message === 'string' &&
    'text' in value &&
    typeof value.text === 'string' &&
    value.text.length <= SCHEMA_MOST
  );
}

/** The schema of a topic: that of the filter with the fewest wildcards, of equal ones the newest. */
export function schemaOf(all: readonly KeptSchema[], topic: string): KeptSchema | null {
  const wildcards = ({ filter }: KeptSchema) =>
    filter.split('/').reduce((sum, level) => sum + (level === '#' ? 100 : level === '+' ? 1 : 0), 0);
  return all
    .filter((one) => matches(one.filter, topic))
    .reduce<KeptSchema | null>(
      (best, one) => (best === null || wildcards(one) <= wildcards(best) ? one : best),
      null,
    );
}

class Schemas {
  all = $state.raw<readonly KeptSchema[]>(parsed(stored()));

  /** Keeps a schema for a filter; whether the browser does so beyond this page. */
  keep(schema: KeptSchema): boolean {
    return this.#set(
      [...this.all.filter((one) => one.filter !== schema.filter), schema].slice(-SCHEMAS_MOST),
    );
  }

  forget(filter: string): void {
    this.#set(this.all.filter((one) => one.filter !== filter));
  }

  #set(all: readonly KeptSchema[]): boolean {
    this.all = all;
    try {
      localStorage.setItem(KEY, JSON.stringify(all));
      return true;
    } catch {
      return false;
    }
  }
}

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export const schemas = new Schemas();
