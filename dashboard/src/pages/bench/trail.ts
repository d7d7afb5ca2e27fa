// The samples of a run: one a second, in columns for the charts.
import type { Sample } from '../../api/bench';
import type { Slice } from '../../charts/heat';

type Maybe = number | null;
/** A sample so much later than the one before leaves a gap, by this many times the usual distance. */
const GAP = 2.6;

/** Samples with those that came later. What is there already is left out. */
export function appended(known: readonly Sample[], more: readonly Sample[]): readonly Sample[] {
  const last = known.at(-1)?.n ?? 0;
  const fresh = more.filter((sample) => sample.n > last);
  return fresh.length === 0 ? known : [...known, ...fresh];
}

/** The usual distance of samples in milliseconds: a second, or more in a long run whose samples were put together. */
export function stepMs(samples: readonly Sample[]): number {
  const apart: number[] = [];
  samples.forEach((sample, index) => {
    const before = samples[index - 1];
    if (before) apart.push(sample.at_secs - before.at_secs);
  });
  apart.sort((one, other) => one - other);
  return Math.max(1, apart[Math.floor(apart.length / 2)] ?? 1) * 1000;
}

/** Times, and values of each column at these times; null in a gap. */
export function columnsOf(
  samples: readonly Sample[],
  pick: readonly ((sample: Sample) => Maybe | undefined)[],
): { at: number[]; columns: Maybe[][] } {
  const longest = stepMs(samples) * GAP;
  const at: number[] = [];
  const columns: Maybe[][] = pick.map(() => []);
  for (const sample of samples) {
    const time = sample.at_secs * 1000;
    const before = at.at(-1);
    if (before !== undefined && time - before > longest) {
      at.push(before + 1000);
      for (const column of columns) column.push(null);
    }
    at.push(time);
    pick.forEach((of, index) => columns[index]?.push(of(sample) ?? null));
  }
  return { at, columns };
}

export function slicesOf(samples: readonly Sample[]): Slice[] {
  return samples.map((sample) => ({
    atMs: sample.at_secs * 1000,
    buckets: sample.histogram.map(([low = 0, high = 0, count = 0]) => [low, high, count] as const),
  }));
}

/** An error of the run with how often it came, and when. */
export interface ErrorCount {
  reason: string;
  count: number;
  firstSecs: number;
  lastSecs: number;
}

/** Errors by reason, the most frequent first. */
export function errorsOf(samples: readonly Sample[]): ErrorCount[] {
  const found = new Map<string, ErrorCount>();
  for (const sample of samples)
    for (const [reason, count] of Object.entries(sample.errors)) {
      if (count <= 0) continue;
      const known = found.get(reason);
      if (known) {
        known.count += count;
        known.lastSecs = sample.at_secs;
      } else found.set(reason, { reason, count, firstSecs: sample.at_secs, lastSecs: sample.at_secs });
    }
  return [...found.values()].sort((one, other) => other.count - one.count);
}

/** The newest value that is known of the last ten samples. */
export function newest(samples: readonly Sample[], of: (sample: Sample) => Maybe | undefined): Maybe {
  for (const sample of samples.slice(-10).reverse()) {
    const value = of(sample);
    if (value !== null && value !== undefined) return value;
  }
  return null;
}

/** Samples of the part of a run that counts, with times from its beginning. */
export function held(samples: readonly Sample[], fromSecs: number, toSecs: number): Sample[] {
  return samples
    .filter((sample) => sample.at_secs > fromSecs && sample.at_secs <= toSecs)
    .map((sample) => ({ ...sample, at_secs: Math.round(sample.at_secs - fromSecs) }));
}

/** A column of several runs at the same seconds. */
export function aligned(
  runs: readonly (readonly Sample[])[],
  of: (sample: Sample) => Maybe | undefined,
): { at: number[]; columns: Maybe[][] } {
  const seconds = [...new Set(runs.flatMap((samples) => samples.map((sample) => sample.at_secs)))].sort(
    (one, other) => one - other,
  );
  return {
    at: seconds.map((second) => second * 1000),
    columns: runs.map((samples) => {
      const values = new Map(samples.map((sample) => [sample.at_secs, of(sample) ?? null]));
      return seconds.map((second) => values.get(second) ?? null);
    }),
  };
}
