// A list of rules while it is changed.

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
