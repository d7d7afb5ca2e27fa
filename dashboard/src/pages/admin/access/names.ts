// What is typed as lists: names with commas between, rules a line each.

/** Names of a text, each once. */
export function namesOf(text: string): string[] {
  return [
    ...new Set(
      text
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== ''),
    ),
  ];
}

/** The text with a name, or without it if it is there. */
export function toggled(text: string, name: string): string {
  const names = namesOf(text);
  return (names.includes(name) ? names.filter((one) => one !== name) : [...names, name]).join(', ');
}

/** Rules of a text; empty lines are none. */
export function rulesOf(text: string): string[] {
  return text
    .split('\n')
    .map((rule) => rule.trim())
    .filter((rule) => rule !== '');
}

/** What a field says, read by `read`. What was there stays as it was, whatever letters it has, if nothing is changed or
 * something is added behind it. */
export function fieldOr(
  was: readonly string[] | undefined,
  between: string,
  text: string,
  read: (text: string) => string[],
): string[] {
  const joined = was?.join(between) ?? '';
  if (!was || joined === '' || !text.startsWith(joined)) return read(text);
  const rest = text.slice(joined.length);
  const mark = between.trim() || between;
  const goesOn = (mark === between ? rest : rest.trimStart()).startsWith(mark);
  if (rest.trim() !== '' && !goesOn) return read(text);
  return [...was, ...read(rest)];
}
