// Ranges of axes. They grow in steps of 1, 2 and 5, so that a chart does not move with each value.

/** The smallest of 1, 2, 5 × 10ⁿ that is not below `value`. */
export function stepAbove(value: number): number {
  if (value <= 0) return 1;
  const size = 10 ** Math.floor(Math.log10(value));
  for (const factor of [1, 2, 5, 10]) if (value <= factor * size * 1.0000001) return factor * size;
  return 10 * size;
}

/** A range from 0 for rates, counts and sizes. */
export function rangeFromZero(largest: number | null, atLeast = 1): [number, number] {
  const top = Math.max(atLeast, largest ?? 0);
  const step = stepAbove(top / 4);
  return [0, Math.ceil(top / step) * step];
}

/** A range of whole decades for latencies. */
export function rangeOfDecades(smallest: number | null, largest: number | null): [number, number] {
  const low = Math.min(0.1, smallest !== null && smallest > 0 ? 10 ** Math.floor(Math.log10(smallest)) : 0.1);
  const high = Math.max(
    10,
    largest !== null && largest > 0 ? 10 ** Math.ceil(Math.log10(largest * 1.0001)) : 10,
  );
  return [Math.max(low, 0.001), high];
}

/** A range around values that need not begin at 0, as temperatures. */
export function rangeAround(smallest: number | null, largest: number | null): [number, number] {
  if (smallest === null || largest === null) return [0, 1];
  if (smallest === largest) {
    const room = smallest === 0 ? 1 : Math.abs(smallest) * 0.1;
    return [smallest - room, largest + room];
  }
  const step = stepAbove((largest - smallest) / 4);
  return [Math.floor(smallest / step) * step, Math.ceil(largest / step) * step];
}

/** The decades of a logarithmic axis. */
export function decades(low: number, high: number): number[] {
  const found: number[] = [];
  for (let power = Math.round(Math.log10(low)); 10 ** power <= high * 1.0001; power += 1)
    found.push(10 ** power);
  return found;
}

/** Milliseconds that a time axis shows: all that there is, in steps, so that it does not move each second. */
export function windowFor(at: readonly number[]): number {
  const spanMs = (at.at(-1) ?? 0) - (at[0] ?? 0);
  for (const minutes of [1, 2, 5, 10]) if (spanMs <= minutes * 60_000) return minutes * 60_000;
  return 900_000;
}
