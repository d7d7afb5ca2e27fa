// What is written in the forms of the test client, as MQTT needs it. No socket here.

export type Format = 'json' | 'text' | 'hex';
export const FORMATS: readonly Format[] = ['json', 'text', 'hex'];

/** Correlation data is any bytes: those that are no text are written as hexadecimal digits. */
export type CorrelationForm = 'text' | 'hex';

/** The bytes of a payload, or why it is none in this form. */
export type Encoded = { bytes: Uint8Array<ArrayBuffer> } | { wrong: 'json' | 'hex'; reason: string };

export function encode(text: string, format: Format): Encoded {
  if (format === 'hex') {
    const digits = text.replace(/0x|[\s:,]/gi, '');
    if (digits.length % 2 !== 0) return { wrong: 'hex', reason: `${digits.length}` };
    if (!/^[0-9a-f]*$/i.test(digits)) return { wrong: 'hex', reason: /[^0-9a-f]/i.exec(digits)?.[0] ?? '' };
    const bytes = new Uint8Array(digits.length / 2);
    for (let at = 0; at < bytes.length; at += 1)
      bytes[at] = Number.parseInt(digits.slice(at * 2, at * 2 + 2), 16);
    return { bytes };
  }
  if (format === 'json' && text.trim() !== '') {
    try {
      JSON.parse(text);
    } catch (error) {
      return { wrong: 'json', reason: error instanceof Error ? error.message : String(error) };
    }
  }
  return { bytes: new TextEncoder().encode(text) };
}

/** Lines "name=value" as user properties; a name may come several times. */
export function userProperties(text: string): Record<string, string | string[]> | null {
  const found: Record<string, string | string[]> = {};
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const at = line.indexOf('=');
    const name = (at < 0 ? line : line.slice(0, at)).trim();
    const value = at < 0 ? '' : line.slice(at + 1).trim();
    const before = found[name];
    found[name] = before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value];
  }
  return Object.keys(found).length === 0 ? null : found;
}

export interface PublishForm {
  topic: string;
  payload: string;
  format: Format;
  qos: 0 | 1 | 2;
  retain: boolean;
  contentType: string;
  responseTopic: string;
  correlation: string;
  /** How the correlation data is written in its field. */
  correlationForm: CorrelationForm;
  expiry: string;
  user: string;
}

export const EMPTY_PUBLISH: PublishForm = {
  topic: '',
  payload: '',
  format: 'json',
  qos: 0,
  retain: false,
  contentType: '',
  responseTopic: '',
  correlation: '',
  correlationForm: 'text',
  expiry: '',
  user: '',
};

/** The field of a correlation that came as hexadecimal digits: the answer must have the same bytes. */
export function correlationOf(digits: string): Pick<PublishForm, 'correlation' | 'correlationForm'> {
  const bytes = Uint8Array.from(digits.match(/../g) ?? [], (two) => Number.parseInt(two, 16));
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    // A field of one line drops line ends, and nobody sees other controls.
    if (!/\p{C}/u.test(text)) return { correlation: text, correlationForm: 'text' };
  } catch {
    // It is no text.
  }
  return { correlation: digits, correlationForm: 'hex' };
}

/** Bytes as base64, of any length. */
export function base64(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x2000)
    text += String.fromCharCode(...bytes.subarray(at, at + 0x2000));
  return btoa(text);
}

/** A whole number of seconds; null if the field is empty or holds none. */
export function secondsOf(text: string): number | null {
  return /^\d{1,10}$/.test(text.trim()) ? Math.min(Number(text.trim()), 0xffff_ffff) : null;
}

/** Why a topic name is none, or a filter; null if it is good. */
export function topicProblem(topic: string): 'empty' | 'wildcard' | null {
  if (topic === '') return 'empty';
  return /[+#]/.test(topic) ? 'wildcard' : null;
}

export function filterProblem(filter: string): 'empty' | 'hash' | 'plus' | null {
  if (filter === '') return 'empty';
  const levels = filter.split('/');
  if (levels.some((level, index) => level.includes('#') && (level !== '#' || index !== levels.length - 1)))
    return 'hash';
  return levels.some((level) => level.includes('+') && level !== '+') ? 'plus' : null;
}

/** Whether a topic matches a filter, shared ones too. */
export function matches(filter: string, topic: string): boolean {
  const plain = filter.replace(/^\$share\/[^/]+\//, '');
  const wanted = plain.split('/');
  const levels = topic.split('/');
  if (topic.startsWith('$') && (wanted[0] === '+' || wanted[0] === '#')) return false;
  for (const [index, level] of wanted.entries()) {
    if (level === '#') return true;
    if (index >= levels.length || (level !== '+' && level !== levels[index])) return false;
  }
  return wanted.length === levels.length;
}

/** The address of MQTT over WebSocket at this page's own origin, below any path. */
export function webSocketAddress(base: string, path: string): string {
  const url = new URL(path.replace(/^\/+/, ''), base.replace(/[#?].*$/, ''));
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  url.search = '';
  url.hash = '';
  // Whatever was written there: credentials are in the packet, never in the address.
  url.username = '';
  url.password = '';
  return url.href;
}

/** The list with a newer row first; rows beyond the limit are forgotten. */
export function bounded<Row>(rows: readonly Row[], newer: readonly Row[], most: number): Row[] {
  return [...[...newer].reverse(), ...rows].slice(0, most);
}
