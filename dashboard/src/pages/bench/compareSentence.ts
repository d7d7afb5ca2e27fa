// What is said of a comparison.
import type { ComparedRow, Comparison } from '../../api/bench';
import { measureOfUnit, measured } from '../../format/measures';
import { joined, percent } from '../../format/numbers';
import type { Piece } from '../../i18n/texts';
import type { State } from '../../ui/state';
import { findingOf, verdictOf } from './standing';
import { t } from './texts';
import { bare, whole } from './verdicts.svelte';
import { figureName, letterOf } from './words';

export interface CompareSentence {
  is: State;
  say: Piece[];
  more: Piece[] | null;
  /** The run that is better than the first; null if none is. */
  winner: number | null;
}

const plain = (text: string): Piece => ({ text, look: 'plain' });

export function compareSentence(found: Comparison | null, chosen: number, failed: boolean): CompareSentence {
  const nothing = { more: null, winner: null };
  if (chosen < 2 || failed) return { is: 'off', say: t.rich('cmp.pick'), ...nothing };
  if (!found) return { is: 'off', say: t.rich('cmp.asking'), ...nothing };
  // The run that differs most is what the sentence is about; the tool's own sentences stand below it.
  const findings = found.runs.slice(1).map((_, index) => findingOf(found, index + 1));
  const at = Math.max(
    0,
    findings.findIndex((finding) => finding.kind !== 'same'),
  );
  const finding = findings[at];
  const more =
    found.conclusions.length === 0 ? null : [plain(found.conclusions.map((text) => whole(text)).join(' '))];
  const run = letterOf(at + 1);
  if (!finding || finding.kind === 'same')
    return {
      is: 'info',
      say: t.rich('cmp.same', { runs: found.runs.map((_, index) => letterOf(index)).join(', ') }),
      more: more ?? t.rich('cmp.same.text'),
      winner: null,
    };
  if (finding.kind === 'not comparable')
    return { is: 'warn', say: t.rich('cmp.not', { why: bare(finding.why) }), more, winner: null };
  if (finding.kind === 'not valid')
    return {
      is: 'warn',
      say: t.rich('cmp.invalid', { runs: finding.runs.map(letterOf).join(', '), n: finding.runs.length }),
      more,
      winner: null,
    };
  const { first, others } = finding;
  const what = figureName(first.what).toLowerCase();
  const delta = changeWords(first, at + 1);
  if (finding.kind === 'mixed') {
    const verdict = verdictOf(first, at + 1);
    const against = others.filter((row) => verdictOf(row, at + 1) !== verdict);
    return {
      is: 'warn',
      say: t.rich('cmp.mixed', {
        run,
        first: t(verdict === 'better' ? 'cmp.word.better' : 'cmp.word.worse'),
        other: t(verdict === 'better' ? 'cmp.word.worse' : 'cmp.word.better'),
        what,
        delta,
        others: against.map((row) => figureName(row.what).toLowerCase()).join(', '),
      }),
      more,
      winner: null,
    };
  }
  const better = finding.kind === 'better';
  const noise = first.noise_ratio[at] ?? null;
  return {
    is: better ? 'ok' : 'bad',
    say: t.rich(better ? 'cmp.better' : 'cmp.worse', {
      run,
      what,
      delta,
      values: t('cmp.values', { now: valueOf(first, at + 1), before: valueOf(first, 0) }),
      noise: noise === null ? '' : t('cmp.noise', { noise: percent(Math.abs(noise)) }),
    }),
    more,
    winner: better ? at + 1 : null,
  };
}

function valueOf(row: ComparedRow, run: number): string {
  return joined(measured(row.values[run] ?? null, measureOfUnit(row.unit, row.what)));
}

function changeWords(row: ComparedRow, run: number): string {
  const delta = row.delta_ratio[run - 1] ?? null;
  if (delta === null) return valueOf(row, run);
  return t(delta < 0 ? 'cmp.lower' : 'cmp.higher', { delta: percent(Math.abs(delta)) });
}
