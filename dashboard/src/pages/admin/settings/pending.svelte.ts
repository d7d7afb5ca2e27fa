// Changes that are not applied yet. They stay while other tabs are looked at.
import { type Schemas, api } from '../../../api/client';
import { Problem, asProblem } from '../../../api/problem';
import { session } from '../../../api/session.svelte';
import type { Json } from './schema';

export type Plan = Schemas['Plan'];

class Pending {
  /** Keys and their new values; null takes a key back. */
  changes = $state.raw<Readonly<Record<string, Json>>>({});
  plan = $state.raw<Plan | null>(null);
  problem = $state.raw<Problem | null>(null);
  asking = $state(false);
  #timer: ReturnType<typeof setTimeout> | null = null;
  #turn = 0;

  constructor() {
    session.whenPersonChanges(() => this.clear());
  }

  get count(): number {
    return Object.keys(this.changes).length;
  }

  has(key: string): boolean {
    return Object.hasOwn(this.changes, key);
  }

  set(key: string, value: Json): void {
    this.changes = { ...this.changes, [key]: value };
    this.#later();
  }

  drop(key: string): void {
    this.changes = Object.fromEntries(Object.entries(this.changes).filter(([name]) => name !== key));
    this.#later();
  }

  clear(): void {
    this.changes = {};
    this.#later();
  }

  #later(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#turn += 1;
    this.plan = null;
    this.problem = null;
    if (this.count === 0) return;
    this.#timer = setTimeout(() => void this.ask(), 400);
  }

  /** Asks the broker what would differ. An answer to older changes counts for nothing. */
  async ask(): Promise<void> {
    const turn = this.#turn;
    this.asking = true;
    try {
      const plan = await api.post('/config/plan', { body: { changes: this.changes } });
      if (turn === this.#turn) {
        this.plan = plan;
        this.problem = null;
      }
    } catch (error) {
      if (turn === this.#turn) {
        this.plan = null;
        this.problem = asProblem(error);
      }
    }
    this.asking = false;
  }

  /** Applies all of the plan or nothing; asks for another plan if something changed meanwhile. */
  async apply(): Promise<Schemas['Applied'] | null> {
    if (!this.plan) return null;
    try {
      const applied = await api.post('/config/apply', {
        body: { changes: this.changes, fingerprint: this.plan.fingerprint },
      });
      this.clear();
      return applied;
    } catch (error) {
      const problem = asProblem(error);
      if (problem.status === 409) await this.ask();
      this.problem = problem;
      return null;
    }
  }
}

export const pending = new Pending();
