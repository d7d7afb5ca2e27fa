import type { Figure } from './figures/table';
import type { State } from './state';

/** A figure of `Facts`. */
export interface Fact {
  of: Figure;
  name: string;
  value: string;
  unit?: string;
  /** Its values of the last minutes, if it changes all the time. */
  line?: readonly (number | null)[];
  colour?: string;
  is?: State;
}
