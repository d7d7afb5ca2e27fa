// Requests to the interface as other programs send them.

/** A word for a shell, in quotes if it needs them. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A request as a line of curl; `path` is below api/v1/. The key is a variable of the reader. */
export function curlOf(
  method: string,
  path: string,
  body = '',
  base = typeof document === 'undefined' ? 'http://localhost/' : document.baseURI,
): string {
  const parts = ['curl', '-H', '"Authorization: Bearer $KEY"'];
  if (method !== 'GET') parts.push('-X', method);
  if (body !== '') parts.push('-H', "'Content-Type: application/json'", '-d', shellWord(body));
  parts.push(shellWord(new URL(`api/v1/${path.replace(/^\//, '')}`, base.replace(/[#?].*$/, '')).href));
  return parts.join(' ');
}

/** A request as `thrum api`. */
export function commandOf(method: string, path: string, body = ''): string {
  const data = body === '' ? '' : ` -d ${shellWord(body)}`;
  return `thrum api ${method.toLowerCase()} ${shellWord(`/${path.replace(/^\//, '')}`)}${data}`;
}
