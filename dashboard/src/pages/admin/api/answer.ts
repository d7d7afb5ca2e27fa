// The answer of a request, bounded: streams end, and what is large is cut.

export interface Answer {
  status: number;
  text: string;
  type: string;
  ms: number;
  bytes: number;
  /** Why there is less than there was. */
  cut: 'size' | 'time' | 'file' | null;
  /** The body as it is shown: JSON is indented. */
  shown: string;
}

const MOST_BYTES = 256 * 1024;
/** How long a stream is read. */
export const STREAM_MS = 5000;

export function isStream(types: readonly string[]): boolean {
  return types.length > 0 && types.every((type) => type === 'text/event-stream');
}

export async function read(response: Response, startedMs: number, stream: boolean): Promise<Answer> {
  const type = (response.headers.get('content-type') ?? '').split(';')[0] ?? '';
  const base = { status: response.status, text: response.statusText, type };
  const textual = type === '' || /json|text|xml|csv/.test(type);
  const reader = response.body?.getReader();
  if (!textual || !reader) {
    await reader?.cancel();
    const length = Number(response.headers.get('content-length') ?? '0');
    const cut = textual ? null : 'file';
    return { ...base, ms: performance.now() - startedMs, bytes: length, cut, shown: '' };
  }
  const decoder = new TextDecoder();
  let bytes = 0;
  let body = '';
  let cut: Answer['cut'] = null;
  let timer: ReturnType<typeof setTimeout> | null = null;
  if (stream)
    timer = setTimeout(() => {
      cut = 'time';
      void reader.cancel();
    }, STREAM_MS);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.length;
    body += decoder.decode(value, { stream: true });
    if (bytes > MOST_BYTES) {
      cut = 'size';
      await reader.cancel();
      break;
    }
  }
  if (timer) clearTimeout(timer);
  const ms = performance.now() - startedMs;
  return { ...base, ms, bytes, cut, shown: cut === null ? indented(body, type) : body };
}

export function indented(body: string, type: string): string {
  if (!type.endsWith('json')) return body;
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
