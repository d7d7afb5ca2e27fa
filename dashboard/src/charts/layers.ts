// What a plot has besides its lines: fields of a heat map below them, marks and limits above.
import type uPlot from 'uplot';
import { type Cell, LEVELS, levelOf } from './heat';
import type { Limit, Mark } from './line';

/** A word keeps this distance from its line. */
const GAP = 5;

/** Draws fields, each in the colour of its level. */
export function drawCells(
  plot: uPlot,
  cells: readonly Cell[],
  top: number,
  colours: readonly string[],
): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (let level = 1; level <= LEVELS; level += 1) {
    ctx.fillStyle = colours[level - 1] ?? '';
    for (const cell of cells) {
      if (levelOf(cell.share, top) !== level) continue;
      const left = Math.round(plot.valToPos(cell.fromMs / 1000, 'x', true));
      const right = Math.round(plot.valToPos(cell.toMs / 1000, 'x', true));
      const upper = Math.round(plot.valToPos(cell.high, 'y', true));
      const lower = Math.round(plot.valToPos(cell.low, 'y', true));
      ctx.fillRect(left, upper, Math.max(1, right - left), Math.max(1, lower - upper));
    }
  }
  ctx.restore();
}

/** Draws where stages begin: a line with a word. */
export function drawMarks(plot: uPlot, marks: readonly Mark[], line: string, ink: string): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.lineWidth = ratio;
  ctx.setLineDash([]);
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = 'top';
  ctx.textAlign = 'left';
  let free = bbox.left;
  for (const mark of marks) {
    const x = Math.round(plot.valToPos(mark.atMs / 1000, 'x', true)) + 0.5;
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = line;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const width = ctx.measureText(mark.text).width;
    const fits = x + (GAP + 2) * ratio + width <= bbox.left + bbox.width;
    if (mark.text === '' || x < free || !fits) continue;
    ctx.fillStyle = ink;
    ctx.fillText(mark.text, x + GAP * ratio, bbox.top);
    free = x + 2 * GAP * ratio + width;
  }
  ctx.restore();
}

/** Draws limits: a dashed line with its sentence at the right. */
export function drawLimits(
  plot: uPlot,
  limits: readonly Limit[],
  colours: readonly string[],
  ground: string,
): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.lineWidth = 1.25 * ratio;
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = 'bottom';
  ctx.textAlign = 'right';
  limits.forEach((limit, index) => {
    const y = Math.round(plot.valToPos(limit.value, 'y', true)) + 0.5;
    if (y < bbox.top - 1 || y > bbox.top + bbox.height) return;
    const colour = colours[index] ?? '';
    ctx.strokeStyle = colour;
    ctx.setLineDash([5 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    // A limit at the top has its sentence below the line.
    const height = 13 * ratio;
    const base = y - height < bbox.top - 8 * ratio ? y + height + 2 * ratio : y - 2 * ratio;
    const right = bbox.left + bbox.width - 2 * ratio;
    const width = ctx.measureText(limit.text).width;
    ctx.fillStyle = ground;
    ctx.fillRect(right - width - 2 * ratio, base - height, width + 4 * ratio, height);
    ctx.fillStyle = colour;
    ctx.fillText(limit.text, right, base);
  });
  ctx.restore();
}
