// The health of the broker for the shell and for Home: its alarms, and what the figures say.
import { type Schemas, api } from '../api/client';
import { figures } from '../api/figures.svelte';
import { live } from '../api/live.svelte';
import { type Problem, asProblem } from '../api/problem';
import type { State } from './state';

export type Alarm = Schemas['Alarm'];

/** The verdict of alarms: critical ones are bad, others are warnings. */
export function verdictOf(alarms: readonly { severity: string }[], drops: number): State {
  if (alarms.some((alarm) => alarm.severity === 'critical')) return 'bad';
  if (drops > 0 || alarms.length > 0) return 'warn';
  return 'ok';
}

/** How many things there are to look at. Messages that are dropped, and queues that are full, are one. */
export function countOf(alarms: readonly { name: string }[], drops: number): number {
  const losing = ['drops_going_on', 'queues_nearly_full'];
  const others = alarms.filter((alarm) => !losing.includes(alarm.name)).length;
  return others + (drops > 0 || others < alarms.length ? 1 : 0);
}

const ASK_MS = 10_000;

class Health {
  #alarms = $state.raw<Alarm[] | null>(null);
  #problem = $state.raw<Problem | null>(null);

  /** Null while they are not known: those of before say nothing about a broker that does not answer. */
  get alarms(): Alarm[] | null {
    return live.state.kind === 'cut' ? null : this.#alarms;
  }

  get problem(): Problem | null {
    return live.state.kind === 'cut' ? live.state.problem : this.#problem;
  }

  start(): () => void {
    void this.load();
    // The stream has no alarms: this is the one thing that the page asks for again and again.
    const timer = setInterval(() => {
      if (!document.hidden) void this.load();
    }, ASK_MS);
    return () => clearInterval(timer);
  }

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

  get count(): number {
    return countOf(this.alarms ?? [], this.dropping);
  }

  get state(): State {
    return this.alarms === null ? 'off' : verdictOf(this.alarms, this.dropping);
  }
}

export const health = new Health();
