// Benchmarks: processes of the broker's own program, which it starts and watches.
import { address, ask } from './client';

type Maybe = number | null;

export interface Scenario {
  name: string;
  title: string;
  text: string;
  group: string;
  toml: string;
  clients: number;
  messages_per_sec_in: number;
  messages_per_sec_out: number;
  duration_secs: number;
}

/** What a run may take. */
export interface BenchLimits {
  cores: Maybe;
  cores_of: Maybe;
  memory_bytes: Maybe;
  duration_secs_max: Maybe;
  clients_max: Maybe;
  runs_kept: Maybe;
  nice: Maybe;
  available: boolean;
  why_not?: string | null;
}

export interface Plan {
  clients: number;
  messages_per_sec_in: Maybe;
  messages_per_sec_out: Maybe;
  duration_secs: Maybe;
  payload_bytes?: Maybe;
  qos?: Maybe;
}

export interface Finding {
  level: string;
  what: string;
  remedy?: string | null;
}

export interface Check {
  ok: boolean;
  target?: string | null;
  plan: Plan | null;
  toml?: string | null;
  findings: Finding[];
}

/** What is asked of a check or a run; `scenario` or `toml`. */
export interface Wanted {
  scenario?: string;
  toml?: string;
  target?: string;
  duration_secs?: number;
  clients?: number;
  rate?: number;
  name?: string;
  username?: string;
  password?: string;
  note?: string;
}

export type RunState = 'preparing' | 'running' | 'done' | 'failed' | 'stopped';

export interface Figures {
  p50_ms: Maybe;
  p99_ms: Maybe;
  p999_ms: Maybe;
  max_ms: Maybe;
  sent_per_sec: Maybe;
  received_per_sec: Maybe;
  delivered_ratio: Maybe;
  lost: Maybe;
  duplicates: Maybe;
  out_of_order: Maybe;
  broker_cores: Maybe;
  broker_rss_bytes: Maybe;
  /** Why a figure must not be used: it may be the generator's. */
  withheld?: Record<string, string> | null;
}

export interface Judged {
  valid: boolean;
  pass: boolean;
  reasons: string[];
}

export interface Run {
  id: string;
  name: string;
  scenario: string;
  target: string;
  state: RunState;
  began_at: string | null;
  ended_at?: string | null;
  duration_secs?: Maybe;
  planned_secs?: Maybe;
  clients?: Maybe;
  stage?: string | null;
  by?: string | null;
  note?: string | null;
  verdict?: Judged | null;
  figures?: Figures | null;
  baseline: boolean;
  files: string[];
  command: string;
  error?: string | null;
  remedy?: string | null;
}

/** A limit that the run must keep, in the words of its scenario: `e2e.p99`, `< 50ms`. */
export interface Threshold {
  what: string;
  limit?: string | null;
  value?: number | null;
  /** The value with its unit, as `3.9ms`. */
  value_text?: string | null;
  pass?: boolean | null;
}

export interface Stage {
  name: string;
  from_secs: number;
  to_secs?: Maybe;
}

export interface RunDetail extends Run {
  toml: string;
  thresholds: Threshold[];
  stages: Stage[];
  limits?: BenchLimits | null;
}

export interface Sample {
  n: number;
  at_secs: number;
  stage?: string | null;
  clients?: Maybe;
  offered_per_sec?: Maybe;
  sent_per_sec?: Maybe;
  received_per_sec?: Maybe;
  p50_ms?: Maybe;
  p99_ms?: Maybe;
  p999_ms?: Maybe;
  max_ms?: Maybe;
  latency?: string | null;
  errors?: Record<string, number> | null;
  broker_cores?: Maybe;
  broker_rss_bytes?: Maybe;
  generator_cores?: Maybe;
  thresholds?: Threshold[] | null;
  histogram?: [number, number, number][] | null;
}

export interface Samples {
  items: Sample[];
  next: number;
  state: RunState;
}

export type Winner = 'better' | 'worse' | 'same' | 'unknown';

/** A figure of several runs; the lists of changes have one entry for each run but the first. */
export interface ComparedRow {
  what: string;
  unit: string;
  better: string;
  values: Maybe[];
  delta_ratio: Maybe[];
  noise_ratio: Maybe[];
  verdict: Winner[];
}

export interface Comparison {
  runs: Run[];
  rows: ComparedRow[];
  why_not_comparable: string[];
  /** A sentence for each run but the first. */
  conclusions?: string[] | null;
}

const ONE = '/benchmarks/runs/{id}';

export const bench = {
  scenarios: async () => (await ask<{ items: Scenario[] }>('get', '/benchmarks/scenarios')).items,
  limits: () => ask<BenchLimits>('get', '/benchmarks/limits'),
  check: (body: Wanted, signal: AbortSignal) => ask<Check>('post', '/benchmarks/check', { body, signal }),
  start: (body: Wanted) => ask<{ id: string }>('post', '/benchmarks/runs', { body }),
  runs: async () => (await ask<{ items: Run[] }>('get', '/benchmarks/runs')).items,
  run: (id: string) => ask<RunDetail>('get', ONE, { path: { id } }),
  samples: (id: string, after: number, signal?: AbortSignal) =>
    ask<Samples>('get', `${ONE}/samples`, { path: { id }, query: { after }, ...(signal ? { signal } : {}) }),
  stop: (id: string) => ask<null>('post', `${ONE}/stop`, { path: { id } }),
  remove: (id: string) => ask<null>('delete', ONE, { path: { id } }),
  pin: (id: string, baseline: boolean) =>
    ask<null>('post', `${ONE}/baseline`, { path: { id }, body: { baseline } }),
  compare: (runs: readonly string[]) =>
    ask<Comparison>('get', '/benchmarks/compare', { query: { runs: runs.join(',') } }),
  /** The address of a file of a run. */
  file: (id: string, name: string) => address(`${ONE}/files/{name}`, { id, name }),
};

/** Whether a run goes on. */
export function isActive(state: RunState): boolean {
  return state === 'preparing' || state === 'running';
}
