// Texts of the broker and of the bench, which begin in lower case and have no full stop, as sentences.

/** With a capital letter, unless it begins with a name, as that of a setting. */
export function capital(text: string): string {
  return /^[a-z]+(?:[\s,;:'’]|$)/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}

const OPENERS =
  /^(?:the|an|this|these|no|not|nothing|nobody|there|it|only|too|one|your|each|every|another|some|for|with|without|while|when|if|what|who)\s/;

/** The same of a text that may begin with a name which somebody gave, as that of a user: it stays as it is. */
export function opened(text: string): string {
  return OPENERS.test(text) ? capital(text) : text;
}

/** With a full stop, too. */
export function sentence(text: string): string {
  const begun = capital(text);
  return /[.。!?]$/.test(begun) ? begun : `${begun}.`;
}
