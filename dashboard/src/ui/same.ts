// The same with other means: what the page asks, as a request of curl and as a command of thrum.
import { type Query, address } from '../api/client';

/** A word as a shell takes it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** A command line; what is null or false is left out. */
export function commandOf(words: readonly (string | null | undefined | false)[]): string {
  const kept = words.filter((word): word is string => typeof word === 'string');
  return ['thrum', ...kept.map(quoted)].join(' ');
}

/** An option with each of its values: --role a --role b. */
export function each(option: string, values: readonly string[]): string[] {
  return values.flatMap((value) => [option, value]);
}

/** A request of curl with an API key. */
export function curlOf(route: string, query: Query = {}, base: string = document.baseURI): string {
  const url = new URL(address(route, {}, query), base).href;
  return `curl -H "Authorization: Bearer $KEY" ${quoted(url)}`;
}
