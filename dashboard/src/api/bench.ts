// Benchmarks: processes of the broker's own program, which it starts and watches.
import { type Schemas, address, api } from './client';

export type Scenario = Schemas['BenchmarkScenario'];
export type BenchLimits = Schemas['BenchmarkLimits'];
export type Check = Schemas['BenchmarkCheck'];
/** What is asked of a check or a run; `scenario` or `toml`. */
export type Wanted = Schemas['BenchmarkToRun'];
export type Run = Schemas['BenchmarkRun'];
export type RunDetail = Schemas['BenchmarkRunInFull'];
/** A limit that the run must keep, in the words of its scenario: `e2e.p99`, `< 50ms`. */
export type Threshold = Schemas['BenchmarkThreshold'];
export type Stage = Schemas['BenchmarkStage'];
export type Sample = Schemas['BenchmarkSample'];
/** A change of a run under way: exactly one of its fields. */
export type Change = Schemas['BenchmarkToChange'];
/** A fault, a change or a note. */
export type RunMark = Schemas['BenchmarkMark'];
export type Comparison = Schemas['BenchmarkComparison'];
export type ComparedRow = Schemas['BenchmarkComparisonRow'];

const ONE = '/benchmarks/runs/{id}';

export const bench = {
  scenarios: async () => (await api.get('/benchmarks/scenarios')).items,
  limits: () => api.get('/benchmarks/limits'),
  check: (body: Wanted, signal: AbortSignal) => api.post('/benchmarks/check', { body, signal }),
  start: (body: Wanted) => api.post('/benchmarks/runs', { body }),
  runs: async () => (await api.get('/benchmarks/runs')).items,
  run: (id: string) => api.get(ONE, { path: { id } }),
  /** Samples with a higher number than `after`, not all of them at once. */
  samples: (id: string, after: number) => api.get(`${ONE}/samples`, { path: { id }, query: { after } }),
  change: (id: string, body: Change) => api.post(`${ONE}/change`, { path: { id }, body }),
  stop: (id: string) => api.post(`${ONE}/stop`, { path: { id } }),
  remove: (id: string) => api.delete(ONE, { path: { id } }),
  pin: (id: string, baseline: boolean) => api.post(`${ONE}/baseline`, { path: { id }, body: { baseline } }),
  compare: (runs: readonly string[]) => api.get('/benchmarks/compare', { query: { runs: runs.join(',') } }),
  /** The address of a file of a run. */
  file: (id: string, name: string) => address(`${ONE}/files/{name}`, { id, name }),
};

/** Whether a run goes on. */
export function isActive(state: string): boolean {
  return state === 'preparing' || state === 'running';
}
