// Which rows of a long list are in the window or near it. No element here.

/** Indices of rows: from the first one to the one after the last one. */
export interface Sight {
  from: number;
  to: number;
}

/** Rows above and below the window that are there already when it is scrolled. */
const NEAR = 10;
/** Bounds move in steps, so that not each pixel of a scroll changes the list. */
const STEP = 10;

/** The rows of a list that are in sight: `top` is how far the list begins above the window, in pixels. */
export function inSight(top: number, windowPx: number, rowPx: number): Sight {
  const first = Math.floor(top / rowPx) - NEAR;
  const last = Math.ceil((top + windowPx) / rowPx) + NEAR;
  return {
    from: Math.max(0, Math.floor(first / STEP) * STEP),
    to: Math.max(0, Math.ceil(last / STEP) * STEP),
  };
}

/** The indices of rows that are drawn: those in sight, and the one that has the focus wherever it is. */
export function drawn(count: number, sight: Sight, focused: number): number[] {
  const indices: number[] = [];
  const from = Math.min(sight.from, count);
  const to = Math.min(sight.to, count);
  if (focused >= 0 && focused < from) indices.push(focused);
  for (let index = from; index < to; index += 1) indices.push(index);
  if (focused >= to && focused < count) indices.push(focused);
  return indices;
}
