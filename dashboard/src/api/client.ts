// Requests to the interface. Routes, parameters and answers have the types of docs/api/openapi.json.
import { noAnswer, problemOf, unspeakable } from './problem';
import type { components, paths } from './schema';

export type Schemas = components['schemas'];

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
/** Routes that have a method. */
export type Route<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, object> ? P : never;
}[keyof paths];
type Operation<P extends keyof paths, M extends Method> = paths[P] extends Record<M, infer O> ? O : never;
type Parameters<O> = O extends { parameters: infer A } ? A : never;
type PathOf<O> = Parameters<O> extends { path: infer A } ? { path: A } : { path?: never };
type QueryOf<O> = Parameters<O> extends { query?: infer A } ? { query?: A } : { query?: never };
type HeadersOf<O> =
  Parameters<O> extends { header?: infer A } ? { headers?: A | undefined } : { headers?: never };
type BodyOf<O> = O extends { requestBody: { content: { 'application/json': infer B } } }
  ? { body: B }
  : { body?: never };
type Json<R> = R extends { content: { 'application/json': infer B } } ? B : null;
type AnswerOf<O> = O extends { responses: infer R }
  ? R extends { 200: infer A }
    ? Json<A>
    : R extends { 201: infer A }
      ? Json<A>
      : R extends { 202: infer A }
        ? Json<A>
        : null
  : never;
type Options<O> = PathOf<O> & QueryOf<O> & HeadersOf<O> & BodyOf<O> & { signal?: AbortSignal };
// eslint-disable-next-line @typescript-eslint/no-generated-empty-object-type -- whether nothing is enough
type Rest<O> = Record<never, never> extends Options<O> ? [options?: Options<O>] : [options: Options<O>];

/** The address of the interface, relative to the page. */
export const BASE = 'api/v1';
/** Value of `x-thrum-token`, which changes by cookie need. */
let token: string | null = null;
let onSignedOut: () => void = () => undefined;

export function setToken(value: string | null): void {
  token = value;
}

/** Calls `action` when an answer says that the session has ended. */
export function whenSignedOut(action: () => void): void {
  onSignedOut = action;
}

/** Parameters behind the question mark; those that are empty are left out. */
export type Query = Readonly<Record<string, unknown>>;

/** The address of a route with its parameters. */
export function address(
  route: string,
  path: Readonly<Record<string, unknown>> = {},
  query: Query = {},
): string {
  const filled = route.replace(/\{(\w+)\}/g, (_, name: string) => segment(String(path[name])));
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === '') continue;
    for (const one of Array.isArray(value) ? value : [value]) parameters.append(name, String(one));
  }
  const tail = parameters.toString();
  return `${BASE}${filled}${tail === '' ? '' : `?${tail}`}`;
}

/** A name in a path. One that is the name of a route, as "facets", is written with an escaped letter. */
function segment(name: string): string {
  const escaped = encodeURIComponent(name);
  if (escaped !== 'facets') return escaped;
  return `%${name.charCodeAt(0).toString(16)}${name.slice(1)}`;
}

/** Whether a browser takes parts of a path away: `.` and `..` mean folders, whether they are escaped or not. */
function isElsewhere(url: string): boolean {
  const [path = ''] = url.split('?');
  return path.split('/').some((part) => part === '.' || part === '..');
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/**
 * Sends a request and answers what comes, whatever its status. A body is JSON unless `fields` say otherwise.
 *
 * # Errors
 * A `Problem` if there is no answer, or if a name in the path is `.` or `..`, with which the browser would ask for
 * something else; what `signal` throws if it ended the request.
 */
export async function send(
  method: string,
  url: string,
  body: string | Blob | undefined,
  signal?: AbortSignal,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<Response> {
  if (isElsewhere(url)) throw unspeakable();
  const headers: Record<string, string> = {};
  if (body !== undefined) headers['content-type'] = 'application/json';
  for (const [name, value] of Object.entries(fields)) if (typeof value === 'string') headers[name] = value;
  if (method.toLowerCase() !== 'get' && token !== null) headers['x-thrum-token'] = token;
  try {
    return await fetch(url, {
      method: method.toUpperCase(),
      headers,
      credentials: 'same-origin',
      ...(body === undefined ? {} : { body }),
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw noAnswer();
  }
}

async function request(
  method: Method,
  url: string,
  body: unknown,
  signal?: AbortSignal,
  fields?: Readonly<Record<string, unknown>>,
): Promise<Response> {
  const sent = body === undefined || body instanceof Blob ? body : JSON.stringify(body);
  const response = await send(method, url, sent, signal, fields);
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (response.status === 401 && token !== null && !url.startsWith(`${BASE}/login`)) onSignedOut();
  throw problem;
}

/** The body of an answer. Its type is that of the description, with which the broker's own tests compare it. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters
function answered<T>(text: string): T {
  // eslint-disable-next-line @typescript-eslint/no-unsafe-return
  return JSON.parse(text === '' ? 'null' : text);
}

function sender<M extends Method>(method: M) {
  return async <P extends Route<M>>(
    route: P,
    ...rest: Rest<Operation<P, M>>
  ): Promise<AnswerOf<Operation<P, M>>> => {
    const options: {
      path?: unknown;
      query?: unknown;
      headers?: unknown;
      body?: unknown;
      signal?: AbortSignal;
    } = rest[0] ?? {};
    const url = address(route, record(options.path), record(options.query));
    const response = await request(method, url, options.body, options.signal, record(options.headers));
    const text = await response.text();
    return answered<AnswerOf<Operation<P, M>>>(text);
  };
}

/** Routes that take a file. */
type FileRoute = {
  [P in Route<'post'>]: Operation<P, 'post'> extends { requestBody?: { content: { 'text/plain': unknown } } }
    ? P
    : never;
}[Route<'post'>];

/** Sends a file to a route that takes one. */
async function upload<P extends FileRoute>(
  route: P,
  file: Blob,
  options: QueryOf<Operation<P, 'post'>>,
): Promise<AnswerOf<Operation<P, 'post'>>> {
  const rest: { query?: unknown } = options;
  const url = address(route, {}, record(rest.query));
  const response = await request('post', url, file, undefined, { 'content-type': 'text/plain' });
  return answered<AnswerOf<Operation<P, 'post'>>>(await response.text());
}

export const api = {
  upload,
  get: sender('get'),
  post: sender('post'),
  put: sender('put'),
  patch: sender('patch'),
  delete: sender('delete'),
};
