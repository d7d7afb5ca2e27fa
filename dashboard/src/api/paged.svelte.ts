// A list that the broker gives in pages: one page is shown, and the cursors of those before are kept.
import { type Problem, asProblem } from './problem';

export interface Part<Row, Rest = unknown> {
  rows: readonly Row[];
  next?: string | null | undefined;
  /** What else the answer says, beside its rows. */
  rest?: Rest;
}

export class Paged<Row, Rest = unknown> {
  /** Rows of the page; null until the first answer. */
  rows = $state.raw<readonly Row[] | null>(null);
  problem = $state.raw<Problem | null>(null);
  page = $state(0);
  /** What the answer of the page says beside its rows. */
  rest = $state.raw<Rest | null>(null);
  #cursors = $state.raw<(string | undefined)[]>([undefined]);
  #asked = 0;
  /** The page that was asked for last. */
  #wanted = 0;
  readonly #ask: (cursor: string | undefined) => Promise<Part<Row, Rest>>;

  constructor(ask: (cursor: string | undefined) => Promise<Part<Row, Rest>>) {
    this.#ask = ask;
  }

  get more(): boolean {
    return this.#cursors[this.page + 1] !== undefined;
  }

  /** Begins anew, with other parameters. */
  first(): Promise<void> {
    this.#cursors = [undefined];
    this.rows = null;
    return this.turn(0);
  }

  /** Asks again for the page that was asked for last, whether it has come or not. */
  again(): Promise<void> {
    return this.turn(this.#wanted);
  }

  async turn(to: number): Promise<void> {
    this.#asked += 1;
    const mine = this.#asked;
    this.#wanted = to;
    try {
      const part = await this.#ask(this.#cursors[to]);
      if (mine !== this.#asked) return;
      this.rows = part.rows;
      this.page = to;
      this.rest = part.rest ?? null;
      this.#cursors = [...this.#cursors.slice(0, to + 1), part.next ?? undefined];
      this.problem = null;
    } catch (error) {
      if (mine === this.#asked) this.problem = asProblem(error);
    }
  }
}
