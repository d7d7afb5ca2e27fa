// What is said of a run: how it stands, which limits it keeps, how it compares.
import type { ComparedRow, Comparison, Run, Threshold } from '../../api/bench';
import { type Condition, conditionOf, conditionText, measureOf } from '../../format/measures';
import type { State } from '../../ui/state';

const WINNERS = ['better', 'worse', 'same', 'unknown'] as const;
/** The verdict of a figure. */
export type Winner = (typeof WINNERS)[number];

/** How a run stands, for a word and a sentence. */
export type Standing =
  'preparing' | 'running' | 'failing' | 'passed' | 'missed' | 'invalid' | 'done' | 'broken' | 'stopped';

export const LOOK: Readonly<Record<Standing, State>> = {
  preparing: 'info',
  running: 'info',
  failing: 'bad',
  passed: 'ok',
  missed: 'bad',
  invalid: 'warn',
  done: 'ok',
  broken: 'bad',
  stopped: 'off',
};

/** How a run stands. While it goes on, a limit that is missed makes it a failing one. */
export function standingOf(
  run: Pick<Run, 'state' | 'verdict'>,
  thresholds: readonly Threshold[] = [],
): Standing {
  switch (run.state) {
    case 'preparing':
      return 'preparing';
    case 'running':
      return thresholds.some((threshold) => threshold.pass === false) ? 'failing' : 'running';
    case 'failed':
      return 'broken';
    case 'stopped':
      return 'stopped';
    default:
      if (!run.verdict) return 'done';
      if (!run.verdict.valid) return 'invalid';
      return run.verdict.pass ? 'passed' : 'missed';
  }
}

/** A limit with what was measured, as the page shows it. */
export interface Judgement {
  what: string;
  condition: Condition | null;
  /** The condition as it is written. */
  limit: string;
  value: number | null;
  /** Why there is no value. */
  text: string | null;
  /** Not known until something was measured. */
  state: 'ok' | 'bad' | 'off';
  /** What is left to the limit, in its unit; negative beyond it. Null for equalities. */
  spare: number | null;
}

export function judgementOf(threshold: Threshold): Judgement {
  const condition = conditionOf(threshold.limit);
  // The text has its unit; a number alone is in that of the interface.
  const written = conditionOf(`== ${threshold.value_text}`)?.value ?? null;
  const number = threshold.value;
  const value = measureOf(threshold.what) === 'ms' ? (written ?? number) : (number ?? written);
  const { pass } = threshold;
  return {
    what: threshold.what,
    condition,
    limit: conditionText(threshold.limit),
    value,
    text: value === null && threshold.value_text !== '' ? threshold.value_text : null,
    state: pass === null ? 'off' : pass ? 'ok' : 'bad',
    spare: spareOf(condition, value),
  };
}

function spareOf(condition: Condition | null, value: number | null): number | null {
  if (condition === null || value === null || condition.sign === '==') return null;
  return condition.sign.startsWith('<') ? condition.value - value : value - condition.value;
}

const AT_THE_END = ['delivered', 'lost'];

/** Limits of the run with the newest values of its samples: the pills turn while it runs. */
export function turned(limits: readonly Threshold[], live: readonly Threshold[] | undefined): Threshold[] {
  const newest = new Map((live ?? []).map((threshold) => [threshold.what, threshold]));
  return limits.map((limit) => {
    const found = newest.get(limit.what);
    if (!found) return limit;
    // Messages on their way are not delivered yet: only the end tells.
    const open = AT_THE_END.includes(limit.what) && found.pass === false;
    return { ...found, limit: limit.limit, ...(open ? { pass: null } : {}) };
  });
}

/** The limits that charts of a kind show: those that bound values from above. */
export function boundsOf(
  thresholds: readonly Threshold[],
  names: readonly string[],
): { what: string; value: number; text: string }[] {
  const found: { what: string; value: number; text: string }[] = [];
  for (const threshold of thresholds) {
    const condition = conditionOf(threshold.limit);
    if (!condition || !names.includes(threshold.what) || !condition.sign.startsWith('<')) continue;
    found.push({
      what: threshold.what,
      value: condition.value,
      text: conditionText(threshold.limit).replace(/^\S+ /, ''),
    });
  }
  return found;
}

/** The name of a figure in two parts: `e2e.p99` is `e2e` and `p99`. */
export function nameParts(what: string): [figure: string, statistic: string] {
  const found = /^(\w+)\.(min|mean|p[\d.]+|max)$/.exec(what);
  return found ? [found[1] ?? what, found[2] ?? ''] : [what, ''];
}

/** The finding of a comparison for one of its runs (1 for the second). */
export type Finding =
  | { kind: 'not comparable'; why: string }
  | { kind: 'not valid'; runs: number[] }
  | { kind: 'better' | 'worse' | 'mixed'; first: ComparedRow; others: ComparedRow[] }
  | { kind: 'same' };

/** The figures that tell first which of two runs is better. */
const LEADING = [
  'e2e.p99',
  'e2e.p99.9',
  'e2e.p50',
  'publish_ack.p99',
  'connect.p99',
  'rate.received',
] as const;

/** What `findingOf` reads. */
type Compared = Pick<Comparison, 'rows' | 'why_not_comparable'> & { runs: readonly Pick<Run, 'verdict'>[] };

export function findingOf(comparison: Compared, run: number): Finding {
  const why = comparison.why_not_comparable[0];
  if (why !== undefined) return { kind: 'not comparable', why };
  const invalid = comparison.runs.flatMap((one, index) => (one.verdict?.valid === false ? [index] : []));
  if (invalid.length > 0) return { kind: 'not valid', runs: invalid };
  const place = (row: ComparedRow) => {
    const found = LEADING.findIndex((name) => name === row.what);
    return found < 0 ? LEADING.length : found;
  };
  const differing = comparison.rows
    .filter((row) => ['better', 'worse'].includes(verdictOf(row, run)))
    .sort((one, other) => place(one) - place(other));
  const [first, ...others] = differing;
  if (!first) return { kind: 'same' };
  const verdict = verdictOf(first, run);
  const agree = others.every((row) => verdictOf(row, run) === verdict);
  if (!agree) return { kind: 'mixed', first, others };
  return { kind: verdict === 'better' ? 'better' : 'worse', first, others };
}

export function verdictOf(row: ComparedRow, run: number): Winner {
  return WINNERS.find((one) => one === row.verdict[run - 1]) ?? 'unknown';
}

/** The look of a verdict of a row. */
export function lookOf(verdict: Winner): State {
  if (verdict === 'better') return 'ok';
  return verdict === 'worse' ? 'bad' : 'off';
}

/** The scale of the noise column: the smallest of these that has all changes and their noise, as a share. */
export function reachOf(rows: readonly ComparedRow[], run: number): number {
  let most = 0.02;
  for (const row of rows) {
    const delta = Math.abs(row.delta_ratio[run - 1] ?? 0);
    const noise = Math.abs(row.noise_ratio[run - 1] ?? 0);
    // One figure that has doubled must not press all others to the middle.
    if (delta <= 1) most = Math.max(most, delta, Math.min(noise, 0.5));
  }
  return [0.05, 0.1, 0.2, 0.5].find((reach) => reach >= most) ?? 1;
}

/** Whether a figure is a latency that the p99 chart can show. */
export function isLatency(what: string): boolean {
  return measureOf(what) === 'ms';
}
