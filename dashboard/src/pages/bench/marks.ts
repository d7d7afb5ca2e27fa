// What happened in a run besides its load: faults, changes by hand, notes.
import type { RunMark, Sample } from '../../api/bench';
import { percent } from '../../format/numbers';
import { stopwatch } from '../../format/time';
import { t } from './texts';

/** Characters of a word in a chart. */
const WORD_MOST = 24;

/** A mark of a run with its words in the reader's language. */
export interface Happened {
  atSecs: number;
  text: string;
  /** As short as a chart has room for. */
  word: string;
}

/** What the program says of a change is in the reader's language; what people wrote, and a fault, stays. */
export function markText({ kind, value, text }: Omit<RunMark, 'at_secs'>): string {
  const number = value ?? null;
  switch (kind) {
    case 'rate':
      return number === null ? text : t('mark.rate', { share: percent(number) });
    case 'extended':
      return number === null ? text : t('mark.extended', { span: stopwatch(number) });
    case 'paused':
    case 'resumed':
    case 'stopped':
      return t(`mark.${kind}`);
    case 'not_changed':
      return number === null ? t('mark.not_changed') : t('mark.not_extended', { span: stopwatch(number) });
    default:
      return text;
  }
}

/** All marks, the first one first. */
export function marksOf(samples: readonly Sample[]): Happened[] {
  return samples.flatMap((sample) =>
    sample.marks.map((mark) => ({ atSecs: mark.at_secs, text: markText(mark), word: word(mark) })),
  );
}

/** Whether the load rests: who came last has paused it. */
export function isPaused(samples: readonly Sample[]): boolean {
  const kinds = samples.flatMap((sample) => sample.marks.map((mark) => mark.kind));
  return kinds.findLast((kind) => kind === 'paused' || kind === 'resumed') === 'paused';
}

function word(mark: RunMark): string {
  const factor = mark.kind === 'rate' ? (mark.value ?? null) : null;
  const text = factor === null ? markText(mark) : t('mark.rate.short', { share: percent(factor) });
  const letters = Array.from(text);
  return letters.length <= WORD_MOST ? text : `${letters.slice(0, WORD_MOST - 1).join('')}…`;
}
