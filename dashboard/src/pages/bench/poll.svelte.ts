// A run as the page shows it: what is said of it, and its samples, asked for while it goes on.
import { type RunDetail, type Sample, bench, isActive } from '../../api/bench';
import { type Problem, asProblem } from '../../api/problem';
import { appended } from './trail';

const ASK_MS = 1000;
/** The broker keeps 3 600 samples, and puts two together when there are more. */
const KEPT_MOST = 7200;
/** Every so many questions for samples, the run itself is asked for. */
const EACH = 3;

export class Watched {
  run = $state.raw<RunDetail | null>(null);
  samples = $state.raw<readonly Sample[]>([]);
  problem = $state.raw<Problem | null>(null);
  loaded = $state(false);
  readonly #id: string;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stopped = false;
  #asked = 0;

  constructor(id: string) {
    this.#id = id;
  }

  /** Asks until the run has ended; answers what ends that. */
  start(): () => void {
    void this.#turn();
    const seen = () => {
      if (!document.hidden) this.#soon(0);
    };
    document.addEventListener('visibilitychange', seen);
    return () => {
      this.#stopped = true;
      clearTimeout(this.#timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }

  /** Asks for the run again, as after a change of it. */
  async again(): Promise<void> {
    this.run = await bench.run(this.#id);
  }

  #soon(ms: number): void {
    clearTimeout(this.#timer);
    if (!this.#stopped) this.#timer = setTimeout(() => void this.#turn(), ms);
  }

  async #turn(): Promise<void> {
    // A hidden page asks nothing.
    if (document.hidden && this.loaded) return;
    const before = this.run?.state ?? null;
    try {
      const state = await this.#load();
      this.#asked += 1;
      if (this.run === null || before !== state || this.#asked % EACH === 0) await this.again();
      this.problem = null;
      this.loaded = true;
    } catch (error) {
      this.problem = asProblem(error);
      this.loaded = true;
      if (this.problem.status === 404) return;
    }
    if (this.problem !== null || this.run === null || isActive(this.run.state)) this.#soon(ASK_MS);
  }

  /** Takes all samples that are new. */
  async #load(): Promise<string> {
    if (this.samples.length > KEPT_MOST) this.samples = [];
    for (;;) {
      const after = this.samples.at(-1)?.n ?? 0;
      const found = await bench.samples(this.#id, after);
      const all = appended(this.samples, found.items);
      if (all === this.samples) return found.state;
      this.samples = all;
    }
  }
}
