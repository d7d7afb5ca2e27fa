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
