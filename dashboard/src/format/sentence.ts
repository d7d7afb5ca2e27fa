// Texts of the broker and of the bench, which begin in lower case and have no full stop, as sentences.

/** With a capital letter, unless it begins with a name, as that of a setting. */
export function capital(text: string): string {
  return /^[a-z]+(?:[\s,;:'’]|$)/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}

/** With a full stop, too. */
export function sentence(text: string): string {
  const begun = capital(text);
  return /[.。!?]$/.test(begun) ? begun : `${begun}.`;
}
