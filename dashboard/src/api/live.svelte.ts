// The one live connection of a page. The shell and the page declare what they show; the broker sends that only,
// and a hidden page gets nothing.
import { address } from './client';
import { type LiveState, endsForGood, isStale, retryDelayMs } from './liveState';
import { Problem, asProblem, noAnswer, problemOf } from './problem';
import { EventParser, type ServerEvent } from './sse';

/** What a part of the page shows. */
export interface Shown {
  figures?: string;
  clients?: string;
  clients_sort?: string;
  clients_descending?: boolean;
  clients_limit?: number;
  client?: readonly string[];
  topics?: readonly string[];
  topics_sort?: string;
  topics_descending?: boolean;
  topics_limit?: number;
  topic?: readonly string[];
  every?: string;
}

/** Takes an event of the stream: its name, and its data as the broker sent it. */
export type Listener = (event: string, data: string) => void;

interface Part {
  shown: Shown;
  listener: Listener;
}

class Live {
  state = $state.raw<LiveState>({ kind: 'off' });
  /** When the newest event came; null before the first one. */
  lastMs = $state<number | null>(null);
  paused = $state(false);

  #parts = new Map<string, Part>();
  #open: AbortController | null = null;
  #url = '';
  #lastId: string | null = null;
  #attempt = 0;
  #retryMs: number | null = null;
  #again: ReturnType<typeof setTimeout> | null = null;
  #started = false;
  /** Events since the page was paused. */
  waiting = $state(0);

  /** Begins; answers what ends it. */
  start(): () => void {
    this.#started = true;
    const look = () => {
      if (document.hidden) this.#close();
      else this.#plan(0);
    };
    const watch = setInterval(() => {
      if (this.state.kind === 'live' && this.lastMs !== null && isStale(this.lastMs, Date.now()))
        this.state = { kind: 'stale', sinceMs: this.lastMs };
      // A silent connection that does not come back in time is given up.
      else if (this.state.kind === 'stale' && Date.now() - this.state.sinceMs > 15_000)
        this.#failed(noAnswer());
    }, 1000);
    document.addEventListener('visibilitychange', look);
    this.#plan(0);
    return () => {
      this.#started = false;
      clearInterval(watch);
      document.removeEventListener('visibilitychange', look);
      this.#close();
      this.#parts.clear();
      this.state = { kind: 'off' };
      this.lastMs = null;
      this.#lastId = null;
    };
  }

  /** Declares what a part of the page shows; answers what takes it back. */
  show(name: string, shown: Shown, listener: Listener): () => void {
    const part = { shown, listener };
    this.#parts.set(name, part);
    // The parts of a page declare one after another: one connection for all of them.
    this.#plan(60);
    return () => {
      if (this.#parts.get(name) === part) this.#parts.delete(name);
      this.#plan(60);
    };
  }

  /** Tries again at once. */
  retry(): void {
    this.#attempt = 0;
    this.#url = '';
    this.#plan(0);
  }

  pause(paused: boolean): void {
    this.paused = paused;
    this.waiting = 0;
    if (!paused) this.retry();
  }

  #plan(delayMs: number): void {
    if (!this.#started || document.hidden) return;
    if (this.#again) clearTimeout(this.#again);
    this.#again = setTimeout(() => {
      this.#again = null;
      const url = this.#address();
      if (url === this.#url && this.#open) return;
      this.#close();
      if (url === null) return;
      this.#url = url;
      void this.#read(url);
    }, delayMs);
  }

  #close(): void {
    if (this.#again) clearTimeout(this.#again);
    this.#again = null;
    this.#open?.abort();
    this.#open = null;
    this.#url = '';
  }

  #address(): string | null {
    if (this.#parts.size === 0) return null;
    const query: Record<string, unknown> = {};
    for (const { shown } of this.#parts.values())
      for (const [name, value] of Object.entries(shown)) if (value !== undefined) query[name] = value;
    return streamAddress(query);
  }

  async #read(url: string): Promise<void> {
    const open = new AbortController();
    this.#open = open;
    if (this.state.kind !== 'cut') this.state = { kind: 'connecting' };
    const parser = new EventParser();
    try {
      const headers: Record<string, string> = { accept: 'text/event-stream' };
      if (this.#lastId !== null) headers['last-event-id'] = this.#lastId;
      const response = await fetch(url, { headers, signal: open.signal, credentials: 'same-origin' }).catch(
        (error: unknown) => {
          throw open.signal.aborted ? error : noAnswer();
        },
      );
      if (!response.ok) throw await problemOf(response);
      const reader = response.body?.getReader();
      if (!reader) throw noAnswer();
      const decoder = new TextDecoder();
      for (;;) {
        const { done, value } = await reader.read();
        if (open.signal.aborted) return;
        if (done) break;
        this.#retryMs = parser.retryMs ?? this.#retryMs;
        for (const event of parser.push(decoder.decode(value, { stream: true })))
          if (this.#take(event)) return;
      }
      throw noAnswer();
    } catch (error) {
      if (open.signal.aborted) return;
      this.#failed(
        error instanceof Problem ? error : error instanceof TypeError ? noAnswer() : asProblem(error),
      );
    }
  }

  /** Whether the stream has ended for good. */
  #take(event: ServerEvent): boolean {
    if (event.event === 'end') {
      const reason = endReason(event.data);
      if (endsForGood(reason)) {
        this.#close();
        this.state = { kind: 'ended', reason };
        return true;
      }
      return false;
    }
    if (event.id !== null) this.#lastId = event.id;
    this.#attempt = 0;
    this.lastMs = Date.now();
    if (this.state.kind !== 'live') this.state = { kind: 'live' };
    if (this.paused && event.event !== 'figures') {
      this.waiting += 1;
      return false;
    }
    for (const { listener } of this.#parts.values()) listener(event.event, event.data);
    return false;
  }

  #failed(problem: Problem): void {
    this.#close();
    this.#attempt += 1;
    const delay = retryDelayMs(this.#attempt, problem, this.#retryMs);
    this.state = {
      kind: 'cut',
      sinceMs: this.lastMs,
      problem,
      retryAtMs: delay === null ? null : Date.now() + delay,
    };
    if (problem.status === 401) this.state = { kind: 'ended', reason: 'login_ended' };
    else if (delay !== null) this.#plan(delay);
  }
}

/** The address of the stream; an empty prefix of topics, which is the top, stays in it. */
export function streamAddress(query: Readonly<Record<string, unknown>>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? value : [value]) parameters.append(name, String(one));
  return `${address('/stream')}?${parameters.toString()}`;
}

function endReason(data: string): string {
  const found: unknown = JSON.parse(data);
  return typeof found === 'object' && found !== null && 'reason' in found && typeof found.reason === 'string'
    ? found.reason
    : '';
}

/** The data of an event. Its type is that of the guide "Live data"; the description of the interface has none. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters
export function eventData<T>(data: string): T {
  // eslint-disable-next-line @typescript-eslint/no-unsafe-return
  return JSON.parse(data);
}

export const live = new Live();
