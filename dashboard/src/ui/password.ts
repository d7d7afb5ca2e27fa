// Letters and digits that are not taken for each other.
const ALPHABET = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789';

/** A random password of four groups of five; each character has the same chance. */
export function freshPassword(random: (bytes: Uint8Array) => void = fill): string {
  let found = '';
  const bytes = new Uint8Array(1);
  const fair = 256 - (256 % ALPHABET.length);
  while (found.length < 20) {
    random(bytes);
    const byte = bytes[0] ?? 255;
    if (byte < fair) found += ALPHABET.charAt(byte % ALPHABET.length);
  }
  return found.replace(/(.{5})(?=.)/g, '$1-');
}

function fill(bytes: Uint8Array): void {
  crypto.getRandomValues(bytes);
}
