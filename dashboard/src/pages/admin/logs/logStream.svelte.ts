// The live connection of the log; it goes on behind its last line when it breaks.
import { type Schemas, address, api } from '../../../api/client';
import { eventData } from '../../../api/live.svelte';
import { retryDelayMs } from '../../../api/liveState';
import { type Problem, asProblem, noAnswer, problemOf } from '../../../api/problem';
import { EventParser, type ServerEvent } from '../../../api/sse';
import { type Row, added, lineRow } from './tail';

export interface Filter {
  level: string;
  target: string;
  text: string;
}

const FIRST = 200;

export class LogStream {
  rows = $state.raw<readonly Row[]>([]);
  /** Lines that came while the page was paused. */
  waiting = $state(0);
  missed = $state(0);
  forgotten = $state(0);
  loaded = $state(false);
  live = $state(false);
  paused = $state(false);
  problem = $state.raw<Problem | null>(null);
  older = $state<string | null>(null);

  readonly #filter: Filter;
  #open: AbortController | null = null;
  #last = 0;
  #attempt = 0;
  #again: ReturnType<typeof setTimeout> | null = null;
  #held: Row[] = [];
  #notes = 0;

  constructor(filter: Filter) {
    this.#filter = filter;
  }

  /** Begins; answers what ends it. */
  start(): () => void {
    const look = () => {
      if (document.hidden) this.#close();
      else this.#connect();
    };
    document.addEventListener('visibilitychange', look);
    void this.#first();
    return () => {
      document.removeEventListener('visibilitychange', look);
      this.#close();
    };
  }

  pause(paused: boolean): void {
    this.paused = paused;
    if (paused) return;
    this.#show(this.#held);
    this.#held = [];
    this.waiting = 0;
  }

  clear(): void {
    this.rows = [];
    this.older = null;
  }

  retry(): void {
    this.#attempt = 0;
    this.problem = null;
    if (this.loaded) this.#connect();
    else void this.#first();
  }

  async more(): Promise<void> {
    if (this.older === null) return;
    try {
      const page = await this.#page(this.older);
      this.rows = [...this.rows, ...page.events.map(lineRow)];
      this.older = page.next ?? null;
    } catch (error) {
      this.problem = asProblem(error);
    }
  }

  #page(cursor: string | null): Promise<Schemas['LogPage']> {
    const { level, target, text } = this.#filter;
    return api.get('/logs', {
      query: {
        limit: FIRST,
        ...(level === '' ? {} : { level }),
        ...(target === '' ? {} : { target }),
        ...(text === '' ? {} : { text }),
        ...(cursor === null ? {} : { cursor }),
      },
    });
  }

  async #first(): Promise<void> {
    this.#open = new AbortController();
    const open = this.#open;
    try {
      const page = await this.#page(null);
      if (open.signal.aborted) return;
      this.rows = page.events.map(lineRow);
      this.#last = page.last;
      this.older = page.next ?? null;
      this.loaded = true;
      this.problem = null;
      this.#open = null;
      this.#connect();
    } catch (error) {
      if (!open.signal.aborted) this.#failed(asProblem(error));
    }
  }

  #connect(): void {
    if (this.#open || document.hidden) return;
    if (!this.loaded) void this.#first();
    else void this.#read();
  }

  #close(): void {
    if (this.#again) clearTimeout(this.#again);
    this.#again = null;
    this.#open?.abort();
    this.#open = null;
    this.live = false;
  }

  async #read(): Promise<void> {
    const open = new AbortController();
    this.#open = open;
    try {
      const { level, target, text } = this.#filter;
      const response = await fetch(address('/logs', {}, { level, target, text }), {
        headers: { accept: 'text/event-stream', 'last-event-id': String(this.#last) },
        signal: open.signal,
        credentials: 'same-origin',
      });
      if (!response.ok) throw await problemOf(response);
      const reader = response.body?.getReader();
      if (!reader) throw noAnswer();
      this.live = true;
      this.problem = null;
      const parser = new EventParser();
      const decoder = new TextDecoder();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) throw noAnswer();
        this.#attempt = 0;
        this.#take(parser.push(decoder.decode(value, { stream: true })));
      }
    } catch (error) {
      if (!open.signal.aborted) this.#failed(error instanceof TypeError ? noAnswer() : asProblem(error));
    }
  }

  #take(events: readonly ServerEvent[]): void {
    const rows: Row[] = [];
    for (const event of events) {
      if (event.event === 'log') {
        const line = eventData<Schemas['LogLine']>(event.data);
        this.#last = Math.max(this.#last, line.number);
        rows.push(lineRow(line));
      } else if (event.event === 'missed') {
        const { events: missed } = eventData<{ events: number }>(event.data);
        this.missed += missed;
        this.#last += missed;
        this.#notes += 1;
        rows.push({ kind: 'missed', key: `missed ${this.#notes}`, events: missed });
      }
    }
    if (rows.length === 0) return;
    if (this.paused) {
      this.#held = [...this.#held, ...rows].slice(-4000);
      this.waiting += rows.length;
    } else this.#show(rows);
  }

  #show(rows: readonly Row[]): void {
    const next = added(this.rows, rows);
    this.rows = next.rows;
    this.forgotten += next.forgotten;
    if (next.forgotten > 0) this.older = null;
  }

  #failed(problem: Problem): void {
    this.#open = null;
    this.live = false;
    this.#attempt += 1;
    const delay = retryDelayMs(this.#attempt, problem, null);
    // A stream that ends after ten minutes goes on at once; only what lasts is told.
    if (this.#attempt > 1 || delay === null || !this.loaded) this.problem = problem;
    if (delay !== null)
      this.#again = setTimeout(() => {
        this.#again = null;
        this.#connect();
      }, delay);
  }
}
