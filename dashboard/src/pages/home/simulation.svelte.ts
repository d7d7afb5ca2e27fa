// A benchmark that goes on: its clients are counted on Home as all others are, so Home says that they are simulated.
import { type Run, bench, isActive } from '../../api/bench';
import { session } from '../../api/session.svelte';
import { toasts } from '../../ui/toasts.svelte';

const ASK_MS = 5000;
export const DEVICES = 'devices';

class Simulation {
  /** The run that goes on; null if there is none, or it is not known. */
  run = $state.raw<Run | null>(null);
  /** Whether benchmarks can run here; null while it is not known. */
  available = $state<boolean | null>(null);
  busy = $state(false);

  start(): () => void {
    if (!session.can('benchmarks:read')) return () => undefined;
    void this.load();
    bench.limits().then(
      (limits) => (this.available = limits.available),
      () => (this.available = false),
    );
    const timer = setInterval(() => {
      if (!document.hidden && this.available === true) void this.load();
    }, ASK_MS);
    return () => clearInterval(timer);
  }

  async load(): Promise<void> {
    try {
      this.run = (await bench.runs()).find((run) => isActive(run.state)) ?? null;
    } catch {
      // What is not known is not said: the page of benchmarks tells why.
      this.run = null;
    }
  }

  async simulate(): Promise<void> {
    await this.#do(() => bench.start({ scenario: DEVICES }));
  }

  async stop(): Promise<void> {
    const id = this.run?.id;
    if (id !== undefined) await this.#do(() => bench.stop(id));
  }

  async #do(action: () => Promise<unknown>): Promise<void> {
    this.busy = true;
    try {
      await action();
      await this.load();
    } catch (error) {
      toasts.failed(error);
    }
    this.busy = false;
  }
}

export const simulation = new Simulation();
