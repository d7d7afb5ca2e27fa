// The health of the broker for the shell and for Home: its alarms, and what the figures say.
import { untrack } from 'svelte';
import { type Schemas, api } from '../api/client';
import { figures } from '../api/figures.svelte';
import { live } from '../api/live.svelte';
import { type Problem, asProblem } from '../api/problem';
import { session } from '../api/session.svelte';
import { LOSS_SECONDS, stateOfDrops } from './loss';
import { type Receivers, type Silence, quietOf, silenceOf } from './silence';
import type { State } from './state';

export type Alarm = Schemas['Alarm'];

/** The verdict of alarms and of drops: critical alarms are bad, others are warnings. */
export function verdictOf(
  alarms: readonly { severity: string }[],
  drops: 'ok' | 'warn' | 'bad',
  stalled = false,
): State {
  if (drops === 'bad' || alarms.some((alarm) => alarm.severity === 'critical')) return 'bad';
  return drops === 'warn' || stalled || alarms.length > 0 ? 'warn' : 'ok';
}

/** How many things there are to look at. Messages that are dropped, and queues that are full, are one. */
export function countOf(
  alarms: readonly { name: string }[],
  drops: 'ok' | 'warn' | 'bad',
  stalled = false,
): number {
  const losing = ['drops_going_on', 'queues_nearly_full'];
  const others = alarms.filter((alarm) => !losing.includes(alarm.name)).length;
  return others + (drops !== 'ok' || others < alarms.length ? 1 : 0) + (stalled ? 1 : 0);
}

const ASK_MS = 10_000;

class Health {
  #alarms = $state.raw<Alarm[] | null>(null);
  #problem = $state.raw<Problem | null>(null);
  #receivers = $state.raw<Receivers | null>(null);

  /** Null while they are not known: those of before say nothing about a broker that does not answer. */
  get alarms(): Alarm[] | null {
    return live.state.kind === 'cut' ? null : this.#alarms;
  }

  get problem(): Problem | null {
    return live.state.kind === 'cut' ? live.state.problem : this.#problem;
  }

  start(): () => void {
    // What it looks at is no reason to begin anew.
    untrack(() => void this.load());
    // The stream has no alarms: this is the one thing that the page asks for again and again.
    const timer = setInterval(() => {
      if (!document.hidden) void this.load();
    }, ASK_MS);
    return () => clearInterval(timer);
  }

  async load(): Promise<void> {
    void this.#askReceivers();
    try {
      this.#alarms = (await api.get('/alarms')).alarms;
      this.#problem = null;
    } catch (error) {
      this.#problem = asProblem(error);
      this.#alarms = null;
    }
  }

  /** Messages that are dropped now, a second. */
  get dropping(): number {
    return figures.rate('drops') ?? 0;
  }

  /** The state of what was dropped within the last minute. */
  get drops(): 'ok' | 'warn' | 'bad' {
    return stateOfDrops((figure) => figures.rate(figure, LOSS_SECONDS));
  }

  /** Why messages come in and none goes out. */
  get silence(): Silence | null {
    return this.alarms === null ? null : silenceOf(this.#quiet(), this.#receivers);
  }

  get count(): number {
    return countOf(this.alarms ?? [], this.drops, this.silence?.why === 'stalled');
  }

  get state(): State {
    if (this.alarms === null) return 'off';
    return verdictOf(this.alarms, this.drops, this.silence?.why === 'stalled');
  }

  #quiet() {
    return quietOf({
      at: figures.times(),
      incoming: figures.column('messages_in'),
      outgoing: figures.column('messages_out'),
    });
  }

  /** Asks about clients only while nothing goes out. */
  async #askReceivers(): Promise<void> {
    const before = this.#receivers?.waitingAway ?? null;
    if (this.#quiet() === null || !session.can('clients:read')) {
      this.#receivers = null;
      return;
    }
    try {
      const [here, away] = await Promise.all(
        ['connected', 'disconnected'].map((state) => api.get('/clients/facets', { query: { state } })),
      );
      this.#receivers = {
        slow: here?.problems.find((facet) => facet.value === 'slow')?.clients ?? 0,
        subscriptions: (here?.subscriptions ?? 0) + (away?.subscriptions ?? 0),
        waitingAway: away?.queued.messages ?? 0,
        waitingAwayBefore: before,
      };
    } catch {
      this.#receivers = null;
    }
  }
}

export const health = new Health();
