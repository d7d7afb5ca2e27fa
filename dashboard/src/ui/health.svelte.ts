// The health of the broker for the shell and for Home: its alarms, and what the figures say.
import { untrack } from 'svelte';
import { type Schemas, api } from '../api/client';
import { figures } from '../api/figures.svelte';
import { live } from '../api/live.svelte';
import { type Problem, asProblem } from '../api/problem';
import { session } from '../api/session.svelte';
import { LOSS_SECONDS, stateOfDrops } from './loss';
import { type Receivers, type Silence, UNHEARD_SECONDS, offeredIn, quietOf, silenceOf } from './silence';
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
    const ask = () => {
      void this.load();
      void this.#askReceivers();
    };
    untrack(ask);
    // The stream has no alarms: this is the one thing that the page asks for again and again.
    const timer = setInterval(() => {
      if (!document.hidden) ask();
    }, ASK_MS);
    return () => clearInterval(timer);
  }

  /** Asks for the alarms. What has grown at receivers is asked in steps of the same length, and not with this. */
  async load(): Promise<void> {
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
    const refused = figures.column('publishes_refused');
    return quietOf({
      at: figures.times(),
      incoming: figures.column('messages_in'),
      outgoing: figures.column('messages_out'),
      lost: figures.column('drops').map((drops, index) => (drops ?? 0) + (refused[index] ?? 0)),
    });
  }

  /** Asks about clients only while nothing goes out. */
  async #askReceivers(): Promise<void> {
    const before = this.#receivers;
    const quiet = this.#quiet();
    if (quiet === null || !session.can('clients:read')) {
      this.#receivers = null;
      return;
    }
    try {
      const [here, away] = await Promise.all(
        ['connected', 'disconnected'].map((state) => api.get('/clients/facets', { query: { state } })),
      );
      // Only a note asks for the sinks, and it takes longer.
      const offered = quiet.seconds < UNHEARD_SECONDS ? null : await askOffered();
      this.#receivers = {
        slow: here?.problems.find((facet) => facet.value === 'slow')?.clients ?? 0,
        subscriptions: (here?.subscriptions ?? 0) + (away?.subscriptions ?? 0),
        waitingAway: away?.queued.messages ?? 0,
        waitingAwayBefore: before?.waitingAway ?? null,
        offered,
        offeredBefore: before?.offered ?? null,
      };
    } catch {
      this.#receivers = null;
    }
  }
}

/** What the sinks were offered; null if the broker does not tell. */
async function askOffered(): Promise<number | null> {
  const response = await fetch('metrics', { credentials: 'same-origin' });
  return response.ok ? offeredIn(await response.text()) : null;
}

export const health = new Health();
