// Packets of a live trace, for the table.

/** A packet of a trace, as the guide "Live traces" describes it; fields depend on its kind. */
export interface Packet {
  at: string;
  direction: string;
  packet: string;
  packet_bytes: number;
  topic?: string | null;
  qos?: number | null;
  retain?: boolean | null;
  packet_id?: number | null;
  reason?: string | null;
  reason_code?: number | null;
  reason_codes?: readonly number[] | null;
  payload?: string | null;
  payload_base64?: string | null;
  payload_bytes?: number | null;
  subscriptions?: unknown;
  filters?: unknown;
}

/**
 * What a packet says, in one line, with the names of reason codes in the language of the page; its identifier has a
 * column of its own, where nothing cuts it.
 */
export function summary(packet: Packet, codeName: (code: number) => string | null = () => null): string {
  const parts: string[] = [];
  if (packet.topic) parts.push(packet.topic);
  if (packet.qos !== undefined && packet.qos !== null && packet.packet === 'PUBLISH')
    parts.push(`QoS ${packet.qos}`);
  if (packet.retain) parts.push('retained');
  if (packet.reason) parts.push(packet.reason);
  const codes =
    packet.reason_codes?.filter((code) => code > 0 || packet.packet === 'SUBACK') ??
    (packet.reason_code ? [packet.reason_code] : []);
  if (codes.length > 0) parts.push(codes.map((code) => reasonOf(code, codeName)).join(', '));
  if (packet.payload) parts.push(packet.payload);
  else if (packet.payload_base64) parts.push(hexOf(packet.payload_base64));
  const filters = packet.subscriptions ?? packet.filters;
  if (filters !== undefined && filters !== null) parts.push(JSON.stringify(filters));
  return parts.join(' · ');
}

/** Reason codes that brokers and clients send [MQTT 5.0, 2.4]; the words are those of the specification. */
const REASONS: Readonly<Record<number, string>> = {
  0x04: 'Disconnect with Will Message',
  0x10: 'No matching subscribers',
  0x11: 'No subscription existed',
  0x18: 'Continue authentication',
  0x19: 'Re-authenticate',
  0x80: 'Unspecified error',
  0x81: 'Malformed Packet',
  0x82: 'Protocol Error',
  0x83: 'Implementation specific error',
  0x84: 'Unsupported Protocol Version',
  0x85: 'Client Identifier not valid',
  0x86: 'Bad User Name or Password',
  0x87: 'Not authorized',
  0x88: 'Server unavailable',
  0x89: 'Server busy',
  0x8a: 'Banned',
  0x8b: 'Server shutting down',
  0x8c: 'Bad authentication method',
  0x8d: 'Keep Alive timeout',
  0x8e: 'Session taken over',
  0x8f: 'Topic Filter invalid',
  0x90: 'Topic Name invalid',
  0x91: 'Packet Identifier in use',
  0x92: 'Packet Identifier not found',
  0x93: 'Receive Maximum exceeded',
  0x94: 'Topic Alias invalid',
  0x95: 'Packet too large',
  0x96: 'Message rate too high',
  0x97: 'Quota exceeded',
  0x98: 'Administrative action',
  0x99: 'Payload format invalid',
  0x9a: 'Retain not supported',
  0x9b: 'QoS not supported',
  0x9c: 'Use another server',
  0x9d: 'Server moved',
  0x9e: 'Shared Subscriptions not supported',
  0x9f: 'Connection rate exceeded',
  0xa0: 'Maximum connect time',
  0xa1: 'Subscription Identifiers not supported',
  0xa2: 'Wildcard Subscriptions not supported',
};

function reasonOf(code: number, codeName: (code: number) => string | null): string {
  const hex = `0x${code.toString(16).padStart(2, '0')}`;
  // Small ones of a SUBACK are the quality of service that is granted.
  if (code <= 2) return `QoS ${code}`;
  const name = codeName(code) ?? REASONS[code];
  return name === undefined ? hex : `${hex} ${name}`;
}

function hexOf(base64: string): string {
  return Array.from(atob(base64).slice(0, 32))
    .map((char) => char.charCodeAt(0).toString(16).padStart(2, '0'))
    .join(' ');
}
