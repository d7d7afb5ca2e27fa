// The rules around the one that decided: what was asked before it, and what was no longer asked.
import type { Schemas } from '../../../api/client';

type Rule = Schemas['Rule'];
export type Step =
  | { kind: 'passed' | 'hit' | 'later'; rule: Rule }
  /** Rules that are left out, as they are many. */
  | { kind: 'skipped'; rules: number };

const BEFORE = 6;
const AFTER = 2;

/** The chain, shortened; `deciding` is empty if no rule decided: then all were asked. */
export function chainOf(
  rules: readonly Rule[],
  deciding: readonly Schemas['DecidingRule'][],
  before = BEFORE,
  after = AFTER,
): Step[] {
  const hits = new Set<number>();
  for (const one of deciding) {
    const at = rules.findIndex(
      (rule, index) => !hits.has(index) && rule.rule === one.rule && rule.source === one.source,
    );
    if (at >= 0) hits.add(at);
  }
  const last = hits.size === 0 ? rules.length : Math.max(...hits);
  const steps: Step[] = [];
  const shown = (index: number) =>
    hits.has(index) ||
    (index < last && last - index <= before) ||
    (index > last && index - last <= after) ||
    [...hits].some((hit) => Math.abs(hit - index) <= 1);
  let skipped = 0;
  const flush = () => {
    if (skipped > 0) steps.push({ kind: 'skipped', rules: skipped });
    skipped = 0;
  };
  rules.forEach((rule, index) => {
    if (!shown(index)) {
      skipped += 1;
      return;
    }
    flush();
    steps.push({ kind: hits.has(index) ? 'hit' : index < last ? 'passed' : 'later', rule });
  });
  flush();
  return steps;
}
