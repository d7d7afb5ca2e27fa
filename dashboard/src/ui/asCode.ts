// Requests to the interface as other programs send them.
import { quoted } from './same';

export { quoted as shellWord } from './same';

/** A request as a line of curl; `path` is below api/v1/. The key is a variable of the reader. */
export function curlOf(
  method: string,
  path: string,
  body = '',
  base = typeof document === 'undefined' ? 'http://localhost/' : document.baseURI,
): string {
  const parts = ['curl', '-H', '"Authorization: Bearer $KEY"'];
  if (method !== 'GET') parts.push('-X', method);
  if (body !== '') parts.push('-H', "'Content-Type: application/json'", '-d', quoted(body));
  parts.push(quoted(new URL(`api/v1/${path.replace(/^\//, '')}`, base.replace(/[#?].*$/, '')).href));
  return parts.join(' ');
}

/** A request as `thrum api`. */
export function commandOf(method: string, path: string, body = ''): string {
  const data = body === '' ? '' : ` -d ${quoted(body)}`;
  return `thrum api ${method.toLowerCase()} ${quoted(`/${path.replace(/^\//, '')}`)}${data}`;
}
