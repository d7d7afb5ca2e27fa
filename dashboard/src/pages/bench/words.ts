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

/** A scenario without a name; older runs have that of where the program read it from. */
export function scenarioName(scenario: string): string {
  return ['own scenario', 'standard-input'].includes(scenario) ? t('own') : scenario;
}

/** The letter of a run in a comparison. */
export function letterOf(index: number): string {
  return String.fromCharCode(65 + index);
}
