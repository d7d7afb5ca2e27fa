// A list of rules while it is changed.
import { lineDifference } from '../../../format/difference';

/** The list with the rule of one place at another. */
export function moved(rules: readonly string[], from: number, to: number): string[] {
  const rule = rules[from];
  if (rule === undefined || to < 0 || to >= rules.length) return [...rules];
  const rest = rules.filter((_, index) => index !== from);
  return [...rest.slice(0, to), rule, ...rest.slice(to)];
}

/** The list with another rule at a place. */
export function replaced(rules: readonly string[], at: number, rule: string): string[] {
  return rules.map((one, index) => (index === at ? rule : one));
}

export function without(rules: readonly string[], at: number): string[] {
  return rules.filter((_, index) => index !== at);
}

/** What is sent: without the rules that are empty. */
export function meant(rules: readonly string[]): string[] {
  return rules.map((rule) => rule.trim()).filter((rule) => rule !== '');
}

export function same(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((rule, index) => rule === b[index]);
}

/** Rules as the broker answers them. */
export function rulesIn(value: unknown): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [];
  return list.filter((rule): rule is string => typeof rule === 'string');
}

/**
 * What somebody made of `base`, made of `theirs`, which others made of it: lines that were removed are gone, and lines
 * that were added stand behind the line they were put behind, else before the one they were put before, else last.
 */
export function rebased(
  base: readonly string[],
  mine: readonly string[],
  theirs: readonly string[],
): string[] {
  const lines = lineDifference(base, mine);
  const result = [...theirs];
  for (const line of lines) {
    const at = line.kind === 'del' ? result.indexOf(line.text) : -1;
    if (at >= 0) result.splice(at, 1);
  }
  for (const [index, line] of lines.entries()) {
    if (line.kind !== 'add') continue;
    // Others have added it, too.
    if (result.includes(line.text) && !base.includes(line.text)) continue;
    const before = lines.slice(0, index).filter((one) => one.kind !== 'del');
    const behind = result.lastIndexOf(before.at(-1)?.text ?? '');
    const next = lines.slice(index + 1).find((one) => one.kind === 'same' && result.includes(one.text));
    const place = behind >= 0 ? behind + 1 : next ? result.indexOf(next.text) : result.length;
    result.splice(place, 0, line.text);
  }
  return result;
}
