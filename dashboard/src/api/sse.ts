// Server-sent events, read from a stream of bytes. The browser's EventSource hides the status and the reason of
// an answer that is no stream, which this page has to show.

export interface ServerEvent {
  id: string | null;
  event: string;
  data: string;
}

/** Takes text as it comes and gives the events that are complete. */
export class EventParser {
  #rest = '';
  #event = '';
  #data: string[] = [];
  #id: string | null = null;
  /** Milliseconds before the next attempt, as the broker asks for; null if it did not. */
  retryMs: number | null = null;

  push(text: string): ServerEvent[] {
    this.#rest += text;
    const events: ServerEvent[] = [];
    for (;;) {
      const end = this.#rest.indexOf('\n');
      if (end < 0) return events;
      const line = this.#rest.slice(0, end).replace(/\r$/, '');
      this.#rest = this.#rest.slice(end + 1);
      const event = this.#line(line);
      if (event) events.push(event);
    }
  }

  #line(line: string): ServerEvent | null {
    if (line === '') {
      const data = this.#data.join('\n');
      const event = this.#event === '' ? 'message' : this.#event;
      const complete = this.#data.length > 0;
      this.#data = [];
      this.#event = '';
      return complete ? { id: this.#id, event, data } : null;
    }
    if (line.startsWith(':')) return null;
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') this.#event = value;
    else if (field === 'data') this.#data.push(value);
    else if (field === 'id') this.#id = value;
    else if (field === 'retry' && /^\d+$/.test(value)) this.retryMs = Number(value);
    return null;
  }
}
