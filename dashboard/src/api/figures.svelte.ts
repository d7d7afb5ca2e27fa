// The figures of the broker, of the last 15 minutes and now. The shell has them for all pages.
import { api } from './client';
import { eventData, live } from './live.svelte';
import { Series } from './series';

interface FiguresEvent {
  at_ms: number;
  figures?: Record<string, number | null>;
}

interface HistoryEvent {
  at_ms: number[];
  figures: Record<string, (number | null)[]>;
}

class Figures {
  readonly series = new Series();
  /** Grows with each second: what depends on it is drawn again. */
  version = $state(0);
  loaded = $state(false);

  start(): () => void {
    void this.#load();
    return live.show('figures', { figures: 'all' }, (event, data) => {
      if (event === 'figures') {
        const { at_ms, figures } = eventData<FiguresEvent>(data);
        if (figures && this.series.push(at_ms, figures)) this.version += 1;
      } else if (event === 'history') {
        const { at_ms, figures } = eventData<HistoryEvent>(data);
        at_ms.forEach((time, index) =>
          this.series.push(
            time,
            Object.fromEntries(
              Object.entries(figures).map(([name, column]) => [name, column[index] ?? null]),
            ),
          ),
        );
        this.version += 1;
      }
    });
  }

  async #load(): Promise<void> {
    try {
      const history = await api.get('/history', { query: { figure: 'all' } });
      this.series.load(history.at_ms, history.figures);
      this.version += 1;
    } catch {
      // The charts begin with the first second that comes; the stream tells what is wrong.
    }
    this.loaded = true;
  }

  now(name: string): number | null {
    void this.version;
    return this.series.latest(name);
  }

  /** A rate as a person reads it, of the last five seconds. */
  rate(name: string, seconds = 5): number | null {
    void this.version;
    return this.series.recent(name, seconds);
  }

  column(name: string): (number | null)[] {
    void this.version;
    return this.series.column(name);
  }

  times(): number[] {
    void this.version;
    return this.series.at;
  }

  /** About how many there were, of all that is kept or of the last seconds. */
  sum(name: string, seconds?: number): number {
    void this.version;
    return this.series.sum(name, seconds);
  }
}

export const figures = new Figures();
