// The one live connection of a page. The shell and the page declare what they show; the broker sends that only,
// and a hidden page gets nothing.
import { now } from '../now.svelte';
import { address } from './client';
import { type LiveState, endsForGood, retryDelayMs, silence } from './liveState';
import { Problem, asProblem, noAnswer, problemOf } from './problem';
import { EventParser, type ServerEvent } from './sse';
import { Tabs } from './tabs';
import { TURN_MS } from './turns';

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

/** Events that wait for a frame; a page that the browser does not draw takes them without one. */
const INBOX_MOST = 200;

export class Live {
  state = $state.raw<LiveState>({ kind: 'off' });
  /** When the newest event came; null before the first one. */
  lastMs = $state<number | null>(null);
  paused = $state(false);

  readonly #tabs = new Tabs();
  #turn: ReturnType<typeof setTimeout> | null = null;
  #parts = new Map<string, Part>();
  /** The parts that the open connection is for: events of the one before mean nothing to a newer part. */
  #served: readonly Part[] = [];
  /** Events that the next frame shows. */
  #inbox: ServerEvent[] = [];
  #frame = 0;
  #open: AbortController | null = null;
  #openedAtMs = 0;
  /** Since when this page wants values: what came before it was hidden is no silence. */
  #wantedSinceMs = 0;
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
      else {
        this.#wantedSinceMs = Date.now();
        this.#plan(0);
      }
    };
    this.#wantedSinceMs = Date.now();
    const watch = setInterval(() => this.#watch(), 1000);
    document.addEventListener('visibilitychange', look);
    const alone = this.#tabs.start(() => this.#takeTurn());
    this.#plan(0);
    return () => {
      this.#started = false;
      alone();
      if (this.#turn) clearTimeout(this.#turn);
      clearInterval(watch);
      document.removeEventListener('visibilitychange', look);
      this.#close();
      this.#parts.clear();
      this.state = { kind: 'off' };
      this.lastMs = null;
      this.#lastId = null;
    };
  }

  /**
   * Whether the broker does not answer: what is shown is from before, and nothing is known of now. One that refuses
   * the stream answers, and so it does to what the page asks for besides.
   */
  get isLost(): boolean {
    return this.state.kind === 'cut' && this.state.problem.unanswered;
  }

  /** Declares what a part of the page shows; answers what takes it back. */
  show(name: string, shown: Shown, listener: Listener): () => void {
    const part = { shown, listener };
    if (this.#parts.size === 0) this.#wantedSinceMs = Date.now();
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

  /** Says that nothing comes, and gives up a silent connection that does not come back in time. */
  #watch(): void {
    if (document.hidden || this.#parts.size === 0) return;
    const nowMs = Date.now();
    const shared = this.#tabs.sharedBy;
    const { kind } = this.state;
    if (kind === 'cut') {
      if (this.#open && silence(nowMs - this.#openedAtMs, shared) === 'dead') this.#failed(noAnswer());
      return;
    }
    if (kind === 'off' || kind === 'ended') return;
    const found = silence(nowMs - Math.max(this.lastMs ?? 0, this.#wantedSinceMs), shared);
    if (found === 'dead') this.#failed(noAnswer());
    else if (found === 'stale' && kind !== 'stale' && this.lastMs !== null)
      this.state = { kind: 'stale', sinceMs: this.lastMs };
  }

  /** Opens or gives up the connection that goes round between many tabs. */
  #takeTurn(): void {
    if (!this.#started || document.hidden) return;
    const mine = this.#tabs.hasTurn;
    if (!mine && this.#open) {
      this.#close();
      const { kind } = this.state;
      // What is wrong stays so until something comes.
      if (this.lastMs !== null && (kind === 'live' || kind === 'connecting' || kind === 'shared'))
        this.state = { kind: 'shared', everyMs: this.#tabs.sharedBy * TURN_MS };
    } else if (mine && !this.#open && !this.#again && !this.#givenUp()) this.#plan(0);
    this.#awaitTurn();
  }

  /** The next turn may be that of another tab. */
  #awaitTurn(): void {
    if (this.#turn) clearTimeout(this.#turn);
    this.#turn =
      this.#tabs.sharedBy > 1 ? setTimeout(() => this.#takeTurn(), this.#tabs.untilNextTurn + 5) : null;
  }

  /** Whether another attempt waits for the reader. */
  #givenUp(): boolean {
    return this.state.kind === 'ended' || (this.state.kind === 'cut' && this.state.retryAtMs === null);
  }

  #plan(delayMs: number): void {
    if (!this.#started || document.hidden) return;
    if (this.#again) clearTimeout(this.#again);
    this.#again = setTimeout(() => {
      this.#again = null;
      const url = this.#address();
      const parts = [...this.#parts.values()];
      // A new part begins with its list as a whole, which is what a new connection sends.
      const same =
        url === this.#url && this.#open !== null && parts.every((part) => this.#served.includes(part));
      if (!same) this.#close();
      this.#served = parts;
      // The turns went on without it while the page was hidden.
      this.#awaitTurn();
      if (url === null && !this.#givenUp()) this.state = { kind: 'off' };
      if (same || url === null || !this.#tabs.hasTurn) return;
      this.#url = url;
      void this.#read(url);
    }, delayMs);
  }

  #close(): void {
    this.#deliver();
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
    this.#openedAtMs = Date.now();
    // What is wrong stays so until something comes.
    const { kind } = this.state;
    if (kind === 'off' || kind === 'live' || kind === 'ended') this.state = { kind: 'connecting' };
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
    const shared = this.#tabs.sharedBy;
    if (this.state.kind !== (shared > 1 ? 'shared' : 'live'))
      this.state = shared > 1 ? { kind: 'shared', everyMs: shared * TURN_MS } : { kind: 'live' };
    if (this.paused && event.event !== 'figures') {
      this.waiting += 1;
      return false;
    }
    this.#inbox.push(event);
    if (this.#inbox.length > INBOX_MOST) this.#deliver();
    else if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#deliver());
    return false;
  }

  /** Gives the parts what has come: once a frame, because each change of a page costs a drawing of it. */
  #deliver(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const events = this.#inbox;
    this.#inbox = [];
    if (events.length > 0) now.withValues();
    const there = new Set(this.#parts.values());
    for (const { event, data } of events)
      for (const part of this.#served) if (there.has(part)) part.listener(event, data);
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
