// The evidence of a cause as tables; its form depends on the cause, so nothing about it is taken for granted.

/** A client that a cause names. */
export interface ClientEvidence {
  clientId: string;
  messages: number | null;
  oldestSeconds: number | null;
  roundTripMicros: number | null;
}

/** Who lost messages of which topic. */
export interface DropEvidence {
  clientId: string;
  topic: string | null;
  messages: number;
}

function fields(value: unknown): Map<string, unknown> {
  return typeof value === 'object' && value !== null
    ? new Map(Object.entries(value))
    : new Map<string, unknown>();
}

function number(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function clientsOf(evidence: object): ClientEvidence[] {
  const found: ClientEvidence[] = [];
  for (const one of list(fields(evidence).get('clients'))) {
    const row = fields(one);
    const clientId = row.get('client_id');
    if (typeof clientId === 'string')
      found.push({
        clientId,
        messages: number(row.get('messages')),
        oldestSeconds: number(row.get('oldest_secs')),
        roundTripMicros: number(row.get('round_trip_micros')),
      });
  }
  return found;
}

export function dropsOf(evidence: object): DropEvidence[] {
  const found: DropEvidence[] = [];
  for (const one of list(fields(evidence).get('of'))) {
    const row = fields(one);
    const clientId = row.get('client_id');
    const topic = row.get('topic');
    if (typeof clientId === 'string')
      found.push({
        clientId,
        topic: typeof topic === 'string' ? topic : null,
        messages: number(row.get('messages')) ?? 0,
      });
  }
  return found;
}

/** The sentence of a cause without the share in front of it, which the page shows large. */
export function withoutShare(sentence: string): string {
  const colon = sentence.indexOf(': ');
  const rest = /^[\d.<]+ %/.test(sentence) && colon > 0 ? sentence.slice(colon + 2) : sentence;
  return rest.charAt(0).toUpperCase() + rest.slice(1);
}

/** Figures of the broker by their names. */
export class Evidence {
  readonly #all: Map<string, unknown>;

  constructor(value: unknown) {
    this.#all = fields(value);
  }

  number(name: string): number | null {
    return number(this.#all.get(name));
  }

  text(name: string): string | null {
    const value = this.#all.get(name);
    return typeof value === 'string' ? value : null;
  }

  is(name: string): boolean | null {
    const value = this.#all.get(name);
    return typeof value === 'boolean' ? value : null;
  }

  list(name: string): Evidence[] {
    return list(this.#all.get(name)).map((one) => new Evidence(one));
  }
}
