// The path of a sparkline in a box of 300 × 100.

export interface SparkPath {
  line: string;
  area: string;
  /** Nothing but zeros: a hairline without colour. */
  zero: boolean;
}

const WIDTH = 300;
const HEIGHT = 100;
const MARGIN = 6;

/** The line alone through values that are all known. The scale begins at 0. */
export function sparkLine(values: readonly number[]): string {
  if (values.length === 0) return '';
  const top = Math.max(...values);
  if (top <= 0) return `M0 ${HEIGHT - 1}H${WIDTH}`;
  const step = WIDTH / Math.max(1, values.length - 1);
  const scale = (HEIGHT - MARGIN) / top;
  // Whole numbers: the box is drawn a fifth as high, and a line that did not move is not drawn again.
  const points = values.map(
    (value, index) => `${Math.round(index * step)} ${Math.round(HEIGHT - value * scale)}`,
  );
  return `M${points.join('L')}`;
}

/** A line through the values; where one is missing there is a gap. The scale begins at 0. */
export function sparkPath(values: readonly (number | null)[]): SparkPath {
  const points = thinned(values, WIDTH);
  const top = Math.max(0, ...points.map((value) => value ?? 0));
  if (top === 0) {
    const any = points.some((value) => value !== null);
    return { line: any ? `M0 ${HEIGHT - 1}H${WIDTH}` : '', area: '', zero: true };
  }
  const x = (index: number) => round((index / Math.max(1, points.length - 1)) * WIDTH);
  const y = (value: number) => round(HEIGHT - (value / top) * (HEIGHT - MARGIN));
  let line = '';
  let area = '';
  let run: string[] = [];
  let first = 0;
  const close = (end: number) => {
    if (run.length > 0) {
      line += `M${run.join('L')}`;
      area += `M${x(first)} ${HEIGHT}L${run.join('L')}L${x(end)} ${HEIGHT}Z`;
    }
    run = [];
  };
  points.forEach((value, index) => {
    if (value === null) {
      close(index - 1);
      return;
    }
    if (run.length === 0) first = index;
    run.push(`${x(index)} ${y(value)}`);
  });
  close(points.length - 1);
  return { line, area, zero: false };
}

/** At most `most` points; of the values of each the largest one stays, so that no peak is lost. */
export function thinned(values: readonly (number | null)[], most: number): (number | null)[] {
  if (values.length <= most) return [...values];
  const result: (number | null)[] = [];
  for (let index = 0; index < most; index += 1) {
    const from = Math.floor((index * values.length) / most);
    const to = Math.max(from + 1, Math.floor(((index + 1) * values.length) / most));
    let largest: number | null = null;
    for (const value of values.slice(from, to))
      if (value !== null && (largest === null || value > largest)) largest = value;
    result.push(largest);
  }
  return result;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
