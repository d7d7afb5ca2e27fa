// Filters of topics, as MQTT has them.

/** Whether a filter matches a topic: "+" is one level, "#" at the end is all below and the level itself. */
export function matches(filter: string, topic: string): boolean {
  const wanted = filter.split('/');
  const levels = topic.split('/');
  // A wildcard at the beginning does not match what the broker says about itself.
  if (topic.startsWith('$') && (wanted[0] === '+' || wanted[0] === '#')) return false;
  for (const [index, level] of wanted.entries()) {
    if (level === '#') return true;
    if (index >= levels.length || (level !== '+' && level !== levels[index])) return false;
  }
  return wanted.length === levels.length;
}

/** Whether a text is a filter: "#" only at the end, wildcards only as whole levels. */
export function isFilter(text: string): boolean {
  const levels = text.split('/');
  return (
    text !== '' &&
    levels.every(
      (level, index) =>
        (level === '#' && index === levels.length - 1) || level === '+' || !/[#+\u0000]/.test(level),
    )
  );
}

/** Whether a text can be a topic: it has no wildcard [MQTT-3.3.2-2], and no character that no topic has. */
export function isTopic(text: string): boolean {
  return text !== '' && !text.includes('+') && !text.includes('#') && !text.includes('\0');
}
