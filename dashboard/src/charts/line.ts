/** A line of a chart. */
export interface Line {
  label: string;
  values: readonly (number | null)[];
  /** A token, as `var(--s1)`. */
  colour: string;
  fill?: boolean;
  dashed?: boolean;
  /**
   * What the legend has without a cursor, as the figure beside the chart has it: a rate is a mean of seconds. By
   * itself, the last value.
   */
  now?: number | null;
}
/** How the vertical axis behaves. */
export type Axis = 'zero' | 'log' | 'around';

/** A moment with a word: where a stage begins. */
export interface Mark {
  atMs: number;
  text: string;
}

/** A limit that values must keep, as a dashed line with its sentence. */
export interface Limit {
  value: number;
  text: string;
  /** A token of a state. */
  colour: string;
}
