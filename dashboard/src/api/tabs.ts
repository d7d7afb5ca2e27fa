// The tabs of this browser that show the dashboard of this broker, as they tell each other.
import { type Tab, hasTurn, sharedBy, untilNextTurn } from './turns';

/** What a tab tells the others. */
type News = { kind: 'here' | 'new'; id: string; usedAtMs: number } | { kind: 'gone'; id: string };

const TELL_MS = 5000;
/** A tab that was not heard of for so long has gone without a word. */
const FORGOTTEN_MS = 13_000;

function isNews(value: unknown): value is News {
  return typeof value === 'object' && value !== null && 'kind' in value && 'id' in value;
}

export class Tabs {
  readonly #id = Array.from(crypto.getRandomValues(new Uint32Array(2)), (part) => part.toString(36)).join('');
  #others = new Map<string, Tab & { heardAtMs: number }>();
  #usedAtMs = 0;
  #channel: BroadcastChannel | null = null;
  #changed: () => void = () => undefined;

  /** Begins to tell and to listen; `changed` is called when other tabs have come, gone or been used. */
  start(changed: () => void): () => void {
    // A connection of HTTP/2 or 3 has room for the streams of all tabs.
    const [entry] = performance.getEntriesByType('navigation');
    const protocol = entry instanceof PerformanceNavigationTiming ? entry.nextHopProtocol : '';
    if (protocol.startsWith('h2') || protocol.startsWith('h3')) return () => undefined;
    this.#changed = changed;
    const channel = new BroadcastChannel(`thrum-tabs ${location.pathname}`);
    this.#channel = channel;
    channel.onmessage = ({ data }: MessageEvent<unknown>) => this.#hear(data);
    this.#usedAtMs = Date.now();
    const used = () => {
      this.#usedAtMs = Date.now();
      this.#tell('here');
      changed();
    };
    const look = () => this.#tell(document.hidden ? 'gone' : 'new');
    const gone = () => this.#tell('gone');
    const timer = setInterval(() => {
      this.#forget();
      if (!document.hidden) this.#tell('here');
    }, TELL_MS);
    window.addEventListener('focus', used);
    document.addEventListener('visibilitychange', look);
    window.addEventListener('pagehide', gone);
    look();
    return () => {
      gone();
      clearInterval(timer);
      window.removeEventListener('focus', used);
      document.removeEventListener('visibilitychange', look);
      window.removeEventListener('pagehide', gone);
      channel.close();
      this.#channel = null;
      this.#others.clear();
    };
  }

  /** Whether this tab may have its stream now. */
  get hasTurn(): boolean {
    return hasTurn(this.#id, this.#all(), Date.now());
  }

  /** How many tabs share one connection with this one; 1 if it has its own. */
  get sharedBy(): number {
    return sharedBy(this.#id, this.#all());
  }

  get untilNextTurn(): number {
    return untilNextTurn(Date.now());
  }

  #all(): Tab[] {
    return [{ id: this.#id, usedAtMs: this.#usedAtMs }, ...this.#others.values()];
  }

  #tell(kind: News['kind']): void {
    this.#channel?.postMessage({ kind, id: this.#id, usedAtMs: this.#usedAtMs });
  }

  #hear(news: unknown): void {
    if (!isNews(news)) return;
    const before = this.#others.get(news.id);
    if (news.kind === 'gone') {
      if (this.#others.delete(news.id)) this.#changed();
      return;
    }
    this.#others.set(news.id, { id: news.id, usedAtMs: news.usedAtMs, heardAtMs: Date.now() });
    if (news.kind === 'new' && !document.hidden) this.#tell('here');
    if (before?.usedAtMs !== news.usedAtMs) this.#changed();
  }

  #forget(): void {
    const oldest = Date.now() - FORGOTTEN_MS;
    for (const [id, tab] of this.#others)
      if (tab.heardAtMs < oldest) {
        this.#others.delete(id);
        this.#changed();
      }
  }
}
