// The terms of a filter of clients, as the broker reads them: "user=alice queue>100".

/** The terms of a filter; a value in quotes may have spaces. */
export function termsOf(filter: string): string[] {
  return filter.match(/(?:"(?:\\.|[^"\\])*"?|[^\s"])+/g) ?? [];
}

/** A term for a value, in quotes if it needs them. */
export function term(key: string, value: string): string {
  return /^[^\s"\\*]+$/.test(value) ? `${key}=${value}` : `${key}="${value.replace(/["\\]/g, '\\$&')}"`;
}

export function hasTerm(filter: string, key: string, value: string): boolean {
  return termsOf(filter).includes(term(key, value));
}

/** The filter with the term, in the place of another value of its key; without it, if it has it. */
export function toggled(filter: string, key: string, value: string): string {
  const wanted = term(key, value);
  const terms = termsOf(filter);
  if (terms.includes(wanted)) return terms.filter((one) => one !== wanted).join(' ');
  return [...terms.filter((one) => !one.startsWith(`${key}=`)), wanted].join(' ');
}

/** The identifier that a filter asks for, if it asks for nothing else: "meter-17", "client=meter-17". */
export function idOf(filter: string): string | null {
  const terms = termsOf(filter);
  const [only] = terms;
  if (terms.length !== 1 || only === undefined) return null;
  const value = only.replace(/^client=/, '');
  const quoted = /^"((?:\\.|[^"\\])*)"$/.exec(value)?.[1];
  if (quoted !== undefined) return quoted.replace(/\\(.)/g, '$1');
  return /[=<>*"]/.test(value) ? null : value;
}

/** While it is typed, a filter may end in the middle of a term: "queue>", `user="a b`. */
export function isUnfinished(words: string): boolean {
  const last = termsOf(words).at(-1);
  if (last === undefined) return false;
  return /[=<>!]$/.test(last) || (last.replace(/\\./g, '').split('"').length - 1) % 2 === 1;
}
