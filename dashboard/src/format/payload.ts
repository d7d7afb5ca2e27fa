// Payloads as the interface gives them: text, or bytes in base64.

export interface Carried {
  payload?: string | null;
  payload_base64?: string | null;
}

/** The bytes of a payload; null if the caller may not see it. */
export function bytesOf(message: Carried): Uint8Array | null {
  if (message.payload !== null && message.payload !== undefined)
    return new TextEncoder().encode(message.payload);
  if (message.payload_base64 === null || message.payload_base64 === undefined) return null;
  return Uint8Array.from(atob(message.payload_base64), (char) => char.charCodeAt(0));
}

/** One line for lists: text as it is, bytes in hexadecimal. */
export function oneLine(message: Carried, most = 64): string {
  if (message.payload !== null && message.payload !== undefined)
    return message.payload.replace(/\s+/g, ' ').slice(0, most);
  const bytes = bytesOf(message);
  if (!bytes) return '';
  const shown = [...bytes.subarray(0, Math.floor(most / 3))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join(' ');
  return bytes.length > most / 3 ? `${shown}…` : shown;
}
