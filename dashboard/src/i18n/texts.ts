// Texts with places for values: "{n} {n|client|clients}", **strong** and `code`.
//
// A text is taken apart first and filled afterwards, so that a value, which may come from a client, is never
// read as markup.

/** A value for a place in a text. */
export type Value = string | number;
export type Values = Readonly<Record<string, Value>>;

/** A piece of a text with its look. */
export interface Piece {
  text: string;
  look: 'plain' | 'strong' | 'code';
}

/** A text as pieces, for `Rich`. */
export function pieces(text: string, values: Values = {}): Piece[] {
  const found: Piece[] = [];
  for (const part of text.split(/(\*\*.+?\*\*|`.+?`)/)) {
    if (part === '') continue;
    if (part.startsWith('**')) found.push({ text: fill(part.slice(2, -2), values), look: 'strong' });
    else if (part.startsWith('`')) found.push({ text: fill(part.slice(1, -1), values), look: 'code' });
    else found.push({ text: fill(part, values), look: 'plain' });
  }
  return found;
}

/** A text with its values. */
export function fill(text: string, values: Values = {}): string {
  return text.replace(
    /\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g,
    (place, name: string, one?: string, many?: string) => {
      const value = values[name];
      if (value === undefined) return place;
      if (one === undefined || many === undefined) return value.toString();
      return value === 1 || value === '1' ? one : many;
    },
  );
}
