// The sentence that each view of the benchmarks begins with.
import {
  type BenchLimits,
  type Run,
  type RunDetail,
  type Sample,
  type Threshold,
  isActive,
} from '../../api/bench';
import { latency, measureOf, measured } from '../../format/measures';
import { count, joined, rate } from '../../format/numbers';
import { type Language, clock, day, minute, span } from '../../format/time';
import type { Piece } from '../../i18n/texts';
import type { State } from '../../ui/state';
import { LOOK, judgementOf, standingOf } from './standing';
import { isPaused } from './marks';
import { t } from './texts';
import { newest } from './trail';
import { bare } from './verdicts.svelte';
import { figureName, stageName } from './words';

export interface Sentence {
  is: State;
  say: Piece[];
  more: Piece[] | null;
  /** A run that the sentence names. */
  show?: string;
}

const plain = (text: string): Piece => ({ text, look: 'plain' });

/** When a run began: the second of one of today, the minute of an older one. */
export function beganText(run: Run, language: Language, nowMs: number): string {
  const at = Date.parse(run.began_at);
  if (Number.isNaN(at)) return '–';
  const today = new Date(at).toDateString() === new Date(nowMs).toDateString();
  return today ? clock(at) : `${day(at, language)}, ${minute(at)}`;
}

/** Seconds that a run has gone on. */
export function goneSecs(run: Run, nowMs: number): number {
  const began = Date.parse(run.began_at);
  return Number.isNaN(began) ? 0 : Math.max(0, Math.round((nowMs - began) / 1000));
}

export function listSentence(view: {
  runs: readonly Run[];
  limits: BenchLimits | null;
  may: boolean;
  nowMs: number;
  language: Language;
}): Sentence {
  const { runs, limits, may, nowMs, language } = view;
  if (limits?.available === false)
    return { is: 'off', say: t.rich('off', { why: bare(limits.why_not) }), more: null };
  const kept = count(limits?.runs_kept);
  const more = t.rich('list.more', { n: runs.length, kept });
  const run = runs[0];
  if (!run)
    return {
      is: 'off',
      say: t.rich('list.none'),
      more: t.rich(may ? 'list.none.text' : 'list.none.read'),
    };
  const reason = bare(run.verdict?.reasons[0] ?? run.error);
  const standing = standingOf(run);
  const is = LOOK[standing];
  const { name } = run;
  switch (standing) {
    case 'preparing':
      return { is, say: t.rich('list.preparing', { name }), more, show: run.id };
    case 'running':
    case 'failing':
      return {
        is,
        say: t.rich('list.running', {
          name,
          stage: stageName(run.stage ?? ''),
          gone: span(goneSecs(run, nowMs), language),
          all: span(run.planned_secs, language),
        }),
        more,
        show: run.id,
      };
    case 'passed':
    case 'done':
      if (run.figures?.p99_ms === null || run.figures?.p99_ms === undefined)
        return { is, say: t.rich('list.passed.short', { name }), more };
      return {
        is,
        say: t.rich('list.passed', {
          name,
          p99: joined(latency(run.figures.p99_ms)),
          rate: rate(run.figures.received_per_sec),
        }),
        more,
      };
    case 'missed':
      return { is, say: t.rich('list.missed', { name, reason }), more, show: run.id };
    case 'invalid':
      return { is, say: t.rich('list.invalid', { name, reason }), more, show: run.id };
    case 'broken':
      return { is, say: t.rich('list.broken', { name, reason }), more, show: run.id };
    case 'stopped':
      return { is, say: t.rich('list.stopped', { name }), more };
  }
}

/** What is said of one run. */
export function runSentence(
  run: RunDetail,
  samples: readonly Sample[],
  thresholds: readonly Threshold[],
  language: Language,
): { is: State; say: Piece[] } {
  const standing = standingOf(run, thresholds);
  const is = LOOK[standing];
  const reason = bare(run.verdict?.reasons[0]);
  const { figures } = run;
  const known = figures !== null && figures.p99_ms !== null;
  const result = {
    p99: joined(latency(figures?.p99_ms)),
    rate: rate(figures?.received_per_sec),
  };
  const lost =
    figures === null
      ? t('run.lost.unknown')
      : figures.lost === 0
        ? t('run.lost.none')
        : t('run.lost', { n: count(figures.lost) });
  switch (standing) {
    case 'preparing':
      return { is, say: t.rich('run.preparing', { name: run.name }) };
    case 'running':
      return { is, say: runningSentence(run, samples, thresholds) };
    case 'failing':
    case 'missed': {
      const missed = thresholds.map(judgementOf).find((one) => one.state === 'bad');
      if (!missed) return { is, say: t.rich('run.missed.short', { reason }) };
      const key = standing === 'failing' ? 'run.failing' : 'run.missed';
      return { is, say: t.rich(key, missedWords(missed)) };
    }
    case 'passed':
      return { is, say: known ? t.joined('run.passed', { lost }, result) : t.rich('run.passed.short') };
    case 'done':
      return { is, say: known ? t.joined('run.done', { lost }, result) : t.rich('run.done.short') };
    case 'invalid':
      return { is, say: t.rich('run.invalid', { reason }) };
    case 'broken':
      return { is, say: t.rich('run.broken', { reason: bare(run.error) }) };
    case 'stopped':
      return { is, say: t.rich('run.stopped', { span: span(run.duration_secs, language) }) };
  }
}

function missedWords(missed: ReturnType<typeof judgementOf>): Record<string, string> {
  const measure = measureOf(missed.what);
  return {
    what: figureName(missed.what),
    value: missed.value === null ? bare(missed.text ?? '–') : joined(measured(missed.value, measure)),
    limit: missed.limit,
  };
}

function runningSentence(
  run: RunDetail,
  samples: readonly Sample[],
  thresholds: readonly Threshold[],
): Piece[] {
  const stage = samples.at(-1)?.stage ?? run.stage ?? '';
  const p99 = newest(samples, (sample) => sample.p99_ms);
  const offered = newest(samples, (sample) => sample.offered_per_sec);
  if (stage !== 'hold' && stage !== 'drain') return t.rich('run.begins', { stage: stageName(stage) });
  if (stage === 'hold' && isPaused(samples))
    return t.rich('run.paused', { clients: count(newest(samples, (sample) => sample.clients)) });
  const say =
    p99 === null || offered === null || offered === 0
      ? t.rich('run.running.idle', { clients: count(newest(samples, (sample) => sample.clients)) })
      : t.rich('run.running', {
          rate: rate(newest(samples, (sample) => sample.sent_per_sec)),
          offered: rate(offered),
          p99: joined(latency(p99)),
        });
  if (thresholds.length === 0) return say;
  const open = thresholds.every((threshold) => threshold.pass === null);
  return [...say, plain(` ${open ? t('run.open') : t('run.keeps', { n: thresholds.length })}`)];
}

/** Whether the newest of the runs goes on. */
export function activeRun(runs: readonly Run[]): Run | null {
  return runs.find((run) => isActive(run.state)) ?? null;
}
