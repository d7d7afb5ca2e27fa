/** A line of a chart. */
export interface Line {
  label: string;
  values: readonly (number | null)[];
  /** A token, as `var(--s1)`. */
  colour: string;
  fill?: boolean;
  dashed?: boolean;
}
/** How the vertical axis behaves. */
export type Axis = 'zero' | 'log' | 'around';
