// What words in the field of "find" mean.

/** The level whose topics the words may be: "site/a/te" is below "site/a/". */
export function levelOf(words: string): string {
  return words.slice(0, words.lastIndexOf('/') + 1);
}

/** Topics of a level whose name contains what is typed of it. */
export function topicsLike<T extends { topic: string; name: string }>(
  topics: readonly T[],
  words: string,
  most: number,
): T[] {
  const level = levelOf(words);
  const rest = words.slice(level.length).toLowerCase();
  return topics
    .filter((one) => one.topic.startsWith(level) && one.name.toLowerCase().includes(rest))
    .slice(0, most);
}

/** Keys of the configuration with all words in their name or description; those with it in the name first. */
export function settingsLike<T extends { key: string; description: string }>(
  settings: readonly T[],
  words: string,
  most: number,
): T[] {
  const wanted = words
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (wanted.length === 0) return [];
  const inAll = (text: string) => wanted.every((word) => text.toLowerCase().includes(word));
  const named = settings.filter(({ key }) => inAll(key));
  const told = settings.filter((one) => !inAll(one.key) && inAll(`${one.key} ${one.description}`));
  return [...named, ...told].slice(0, most);
}
