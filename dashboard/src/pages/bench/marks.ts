// What happened in a run besides its load: faults, changes by hand, notes.
import type { RunMark, Sample } from '../../api/bench';
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

/** The words of the program for what it does by itself; what people wrote stays. */
const KNOWN: readonly (readonly [RegExp, Parameters<typeof t>[0]])[] = [
  [/^rate (?<share>.+) of the planned one$/, 'mark.rate'],
  [/^paused$/, 'mark.paused'],
  [/^resumed$/, 'mark.resumed'],
  [/^hold extended by (?<span>.+)$/, 'mark.extended'],
  [/^stopped by hand$/, 'mark.stopped'],
];

export function markText({ text }: Pick<RunMark, 'text'>): string {
  for (const [words, key] of KNOWN) {
    const found = words.exec(text);
    if (found) return t(key, { ...found.groups });
  }
  return text;
}

/** All marks, the first one first. */
export function marksOf(samples: readonly Sample[]): Happened[] {
  return samples.flatMap((sample) =>
    sample.marks.map((mark) => ({ atSecs: mark.at_secs, text: markText(mark), word: word(mark) })),
  );
}

/** Whether the load rests: who came last has paused it. */
export function isPaused(samples: readonly Sample[]): boolean {
  const words = samples.flatMap((sample) => sample.marks.map((mark) => mark.text));
  return words.findLast((word) => word === 'paused' || word === 'resumed') === 'paused';
}

function word(mark: RunMark): string {
  const share = /^rate (?<share>\S+ ?%)/.exec(mark.text)?.groups?.['share'];
  const text = share === undefined ? markText(mark) : t('mark.rate.short', { share });
  const letters = Array.from(text);
  return letters.length <= WORD_MOST ? text : `${letters.slice(0, WORD_MOST - 1).join('')}…`;
}
