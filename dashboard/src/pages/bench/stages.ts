// The stages of a run on its time axis.
import type { RunDetail, Sample, Stage } from '../../api/bench';

export interface Part {
  name: string;
  fromSecs: number;
  toSecs: number;
}

export type Progress = Part & { is: 'done' | 'now' | 'next'; share: number };

/** Stages with an end: one that is open ends where the next begins, the last one with the run. */
export function partsOf(stages: readonly Stage[], endSecs: number): Part[] {
  return stages
    .map((stage, index) => ({
      name: stage.name,
      fromSecs: stage.from_secs,
      toSecs: stage.to_secs ?? stages[index + 1]?.from_secs ?? Math.max(endSecs, stage.from_secs),
    }))
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
  run: Pick<RunDetail, 'planned_secs' | 'stages'>,
  samples: readonly Sample[],
  ended: boolean,
): number {
  const last = samples.at(-1)?.at_secs ?? 0;
  if (ended && last > 0) return last;
  const planned = run.planned_secs ?? run.stages.at(-1)?.to_secs ?? 0;
  return Math.max(planned, last, 1);
}

/** The part of a run that counts. */
export function holdOf(stages: readonly Stage[], endSecs: number): Part | null {
  return partsOf(stages, endSecs).find((part) => part.name === 'hold') ?? null;
}
