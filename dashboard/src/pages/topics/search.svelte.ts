// A search of all topics that the broker knows, asked again while it is shown.
import { type Schemas, api } from '../../api/client';
import { type Problem, asProblem } from '../../api/problem';

export type Hits = Schemas['TopicHits'];

/** Typing goes on for so long before the broker is asked. */
const PAUSE_MS = 200;
/** What is shown is asked for again after this time. */
const AGAIN_MS = 3000;

export class TopicSearch {
  /** What was found last; null before the first answer to a text. */
  hits = $state.raw<Hits | null>(null);
  problem = $state.raw<Problem | null>(null);
  /** The text of the answer that is shown. */
  of = $state('');

  /** Searches for a text until what this returns is called. */
  follow(text: string): () => void {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      if (!document.hidden) await this.#ask(text, stop.signal);
      if (!stop.signal.aborted) timer = setTimeout(() => void ask(), AGAIN_MS);
    };
    timer = setTimeout(() => void ask(), PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }

  forget() {
    this.hits = null;
    this.problem = null;
    this.of = '';
  }

  /** The topics of a text: those that are shown, or asked for now. */
  async topics(text: string): Promise<readonly Schemas['Topic'][]> {
    if (this.of === text && this.hits !== null) return this.hits.topics;
    try {
      return (await api.get('/topics/search', { query: { text } })).topics;
    } catch {
      return [];
    }
  }

  async #ask(text: string, signal: AbortSignal) {
    try {
      const found = await api.get('/topics/search', { query: { text }, signal });
      if (signal.aborted) return;
      this.hits = found;
      this.of = text;
      this.problem = null;
    } catch (error) {
      if (!signal.aborted) this.problem = asProblem(error);
    }
  }
}
