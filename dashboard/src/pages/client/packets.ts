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
  payload?: string | null;
  payload_base64?: string | null;
  payload_bytes?: number | null;
  subscriptions?: unknown;
  filters?: unknown;
}

/** What a packet says, in one line. */
export function summary(packet: Packet): string {
  const parts: string[] = [];
  if (packet.topic) parts.push(packet.topic);
  if (packet.qos !== undefined && packet.qos !== null && packet.packet === 'PUBLISH')
    parts.push(`QoS ${packet.qos}`);
  if (packet.retain) parts.push('retained');
  if (packet.packet_id !== undefined && packet.packet_id !== null) parts.push(`id ${packet.packet_id}`);
  if (packet.reason) parts.push(packet.reason);
  if (packet.payload) parts.push(packet.payload);
  else if (packet.payload_base64) parts.push(hexOf(packet.payload_base64));
  const filters = packet.subscriptions ?? packet.filters;
  if (filters !== undefined && filters !== null) parts.push(JSON.stringify(filters));
  return parts.join(' · ');
}

function hexOf(base64: string): string {
  return Array.from(atob(base64).slice(0, 32))
    .map((char) => char.charCodeAt(0).toString(16).padStart(2, '0'))
    .join(' ');
}
