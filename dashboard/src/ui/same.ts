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

/** A request that reads, of curl with an API key. */
export function curlOf(route: string, query: Query = {}, base?: string): string {
  return curlRequest('GET', address(route, {}, query), '', base);
}

/** A request of curl; `path` is below this page. The key is a variable of the reader. */
export function curlRequest(
  method: string,
  path: string,
  body = '',
  base: string = document.baseURI,
): string {
  const parts = ['curl', '-H', '"Authorization: Bearer $KEY"'];
  if (method.toUpperCase() !== 'GET') parts.push('-X', method.toUpperCase());
  if (body !== '') parts.push('-H', "'Content-Type: application/json'", '-d', quoted(body));
  parts.push(quoted(new URL(path, base.replace(/[#?].*$/, '')).href));
  return parts.join(' ');
}

/** A request as `thrum api`; `path` is below api/v1/. */
export function apiCommand(method: string, path: string, body = ''): string {
  return commandOf(['api', method.toLowerCase(), path, ...(body === '' ? [] : ['--data', body])]);
}
