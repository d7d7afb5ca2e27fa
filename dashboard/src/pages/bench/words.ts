// Names of figures and stages in the reader's language.
import { nameParts } from './standing';
import { t } from './texts';

export function figureName(what: string): string {
  const [figure, statistic] = nameParts(what);
  const name = t.maybe(`d.${figure}`, figure.replaceAll('_', ' '));
  return statistic === '' ? name : `${name} ${statistic}`;
}

export function stageName(stage: string): string {
  return t.maybe(`stage.${stage}`, stage);
}

/** A text without a name has that of where the program read it from. */
export function scenarioName(scenario: string): string {
  return scenario === 'standard-input' ? t('own') : scenario;
}

/** The letter of a run in a comparison. */
export function letterOf(index: number): string {
  return String.fromCharCode(65 + index);
}
