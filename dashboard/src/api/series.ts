// The figures of the last 15 minutes, as columns for the charts.

export const SECONDS_KEPT = 900;
/** The stream and the history stamp the same second less than this apart. */
const SAME_MS = 500;

/** Times in milliseconds, and the values of each figure at these times; null where one is not known. */
export class Series {
  at: number[] = [];
  columns = new Map<string, (number | null)[]>();

  /** Takes what the broker has kept. */
  load(at: readonly number[], figures: Readonly<Record<string, readonly (number | null)[]>>): void {
    // What came by the stream meanwhile stays, behind it.
    const last = at.at(-1) ?? 0;
    const newer = this.at
      .map((time, index) => ({ time, index }))
      .filter(({ time }) => time >= last + SAME_MS);
    const before = this.columns;
    const names = new Set([...Object.keys(figures), ...before.keys()]);
    this.columns = new Map();
    for (const name of names) {
      const loaded = figures[name] ?? at.map(() => null);
      const appended = newer.map(({ index }) => before.get(name)?.[index] ?? null);
      this.columns.set(name, [...loaded, ...appended]);
    }
    this.at = [...at, ...newer.map(({ time }) => time)];
    this.#forget();
  }

  /** Takes the figures of one second. An older one than the newest is a repetition, and left out. */
  push(at: number, figures: Readonly<Record<string, number | null>>): boolean {
    const last = this.at.at(-1);
    if (last !== undefined && at < last + SAME_MS) return false;
    const length = this.at.length;
    this.at.push(at);
    for (const [name, value] of Object.entries(figures)) {
      let column = this.columns.get(name);
      if (!column) {
        column = new Array<number | null>(length).fill(null);
        this.columns.set(name, column);
      }
      column.push(value);
    }
    for (const column of this.columns.values()) if (column.length === length) column.push(null);
    this.#forget();
    return true;
  }

  column(name: string): (number | null)[] {
    return this.columns.get(name) ?? this.at.map(() => null);
  }

  latest(name: string): number | null {
    return this.columns.get(name)?.at(-1) ?? null;
  }

  /** The mean of the last seconds: a rate that a person reads, which one second does not change. */
  recent(name: string, seconds: number): number | null {
    const from = (this.at.at(-1) ?? 0) - seconds * 1000;
    const values = this.column(name).filter((value, index): value is number => {
      return value !== null && (this.at[index] ?? 0) > from;
    });
    return values.length === 0 ? null : values.reduce((all, value) => all + value, 0) / values.length;
  }

  /**
   * The sum of a rate over the kept time, or over the last seconds of it: about the number of events. A value stands
   * for the time since the one before it, so that two of the same second count once; it says nothing about a longer
   * gap.
   */
  sum(name: string, seconds = Infinity): number {
    const from = (this.at.at(-1) ?? 0) - seconds * 1000;
    return this.column(name).reduce<number>((total, value, index) => {
      if ((this.at[index] ?? 0) <= from) return total;
      const before = this.at[index - 1];
      const seconds = before === undefined ? 1 : ((this.at[index] ?? 0) - before) / 1000;
      return total + (value ?? 0) * (seconds > 1.5 ? 1 : seconds);
    }, 0);
  }

  #forget(): void {
    const beyond = this.at.length - SECONDS_KEPT;
    if (beyond <= 0) return;
    this.at.splice(0, beyond);
    for (const column of this.columns.values()) column.splice(0, beyond);
  }
}

/** What a counter of events grew by in a second, between two moments; null when it began anew or no time has passed. */
export function ratePerSecond(
  before: { atMs: number; count: number } | null,
  atMs: number,
  count: number,
): number | null {
  if (before === null || atMs <= before.atMs || count < before.count) return null;
  return ((count - before.count) * 1000) / (atMs - before.atMs);
}

/** Columns for a chart, with a null where seconds are missing, so that no line crosses the gap. */
export function withGaps(
  at: readonly number[],
  columns: readonly (readonly (number | null)[])[],
  longestMs: number,
): { at: number[]; columns: (number | null)[][] } {
  const times: number[] = [];
  const filled: (number | null)[][] = columns.map(() => []);
  let before: number | null = null;
  at.forEach((time, index) => {
    if (before !== null && time - before > longestMs) {
      times.push(before + 1000);
      for (const column of filled) column.push(null);
    }
    times.push(time);
    columns.forEach((column, number) => filled[number]?.push(column[index] ?? null));
    before = time;
  });
  return { at: times, columns: filled };
}
