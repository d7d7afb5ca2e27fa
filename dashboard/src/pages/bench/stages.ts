// The stages of a run on its time axis.
import type { RunDetail, Sample, Stage } from '../../api/bench';
import { parseToml } from './toml';

export interface Part {
  name: string;
  fromSecs: number;
  toSecs: number;
}

export type Progress = Part & { is: 'done' | 'now' | 'next'; share: number };

const UNITS: Readonly<Record<string, number>> = {
  us: 1e-6,
  ms: 0.001,
  s: 1,
  m: 60,
  min: 60,
  h: 3600,
  d: 86_400,
};

/** Seconds of a span as scenarios have it: `1h30m`, `500ms`; null if it is none. */
export function spanSecs(text: string): number | null {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(us|ms|min|s|m|h|d)/g)];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) return null;
  return parts.reduce((sum, [, number = '', unit = '']) => sum + Number(number) * (UNITS[unit] ?? 0), 0);
}

/** Lengths of the stages after the ramp, as the program takes them where the scenario says nothing. */
const DEFAULT_SECS = { warmup: 5, hold: 60, drain: 5 };

function lengthsOf(toml: string): typeof DEFAULT_SECS | null {
  const found = { ...DEFAULT_SECS };
  try {
    const { stages } = parseToml(toml);
    for (const stage of Array.isArray(stages) ? stages : []) {
      const [name, span] = typeof stage === 'string' ? stage.split(/\s+/) : [];
      const secs = spanSecs(span ?? '');
      if (secs !== null && (name === 'warmup' || name === 'hold' || name === 'drain')) found[name] = secs;
    }
  } catch {
    return null;
  }
  return found;
}

/** All stages of a run that goes on: those that began where they began, the others as they are planned. */
export function plannedStages(
  run: Pick<RunDetail, 'planned_secs' | 'duration_secs' | 'stages' | 'toml'>,
): Stage[] {
  const lengths = lengthsOf(run.toml);
  if (!lengths || run.planned_secs === 0) return run.stages;
  // Somebody may have extended it.
  const hold = Math.max(lengths.hold, run.duration_secs);
  const ramp = Math.max(0, run.planned_secs - lengths.warmup - hold - lengths.drain);
  const begun = new Map(run.stages.map((stage) => [stage.name, stage.from_secs]));
  const found: Stage[] = [];
  let end = 0;
  for (const [name, secs] of [
    ['ramp', ramp],
    ['warm-up', lengths.warmup],
    ['hold', hold],
    ['drain', lengths.drain],
  ] as const) {
    const from = begun.get(name) ?? end;
    const before = found.at(-1);
    if (before) before.to_secs = from;
    end = from + secs;
    found.push({ name, from_secs: from, to_secs: end });
  }
  return found;
}

/** Stages that took time. */
export function partsOf(stages: readonly Stage[]): Part[] {
  return stages
    .map((stage) => ({ name: stage.name, fromSecs: stage.from_secs, toSecs: stage.to_secs }))
    .filter((part) => part.toSecs > part.fromSecs);
}

export function progressOf(parts: readonly Part[], atSecs: number, ended: boolean): Progress[] {
  return parts.map((part) => {
    if (ended || atSecs >= part.toSecs) return { ...part, is: 'done', share: 1 };
    if (atSecs <= part.fromSecs) return { ...part, is: 'next', share: 0 };
    return { ...part, is: 'now', share: (atSecs - part.fromSecs) / (part.toSecs - part.fromSecs) };
  });
}

/** Seconds of the time axis: a run that goes on has all of it from the start; one that has ended, what there is. */
export function lengthSecs(
  run: Pick<RunDetail, 'planned_secs'>,
  samples: readonly Pick<Sample, 'at_secs'>[],
  ended: boolean,
): number {
  const last = samples.at(-1)?.at_secs ?? 0;
  if (ended && last > 0) return last;
  return Math.max(run.planned_secs, last, 1);
}

/** The part of a run that counts. */
export function holdOf(stages: readonly Stage[]): Part | null {
  return partsOf(stages).find((part) => part.name === 'hold') ?? null;
}
