// What the reader of the page did, and how it went. Errors stay until they are closed.
import { asProblem } from '../api/problem';

export interface Toast {
  id: number;
  state: 'ok' | 'bad';
  /** Read when they are drawn: those of a problem are in the language of the page only when its texts have come. */
  words: { readonly title: string; readonly text: string };
}

class Toasts {
  shown = $state.raw<Toast[]>([]);
  #next = 1;

  done(title: string, text = ''): void {
    const id = this.#add({ state: 'ok', words: { title, text } });
    setTimeout(() => this.close(id), 6000);
  }

  failed(error: unknown): void {
    const problem = asProblem(error);
    const words = {
      get title() {
        return problem.sentence;
      },
      get text() {
        return problem.remedy;
      },
    };
    this.#add({ state: 'bad', words });
  }

  close(id: number): void {
    this.shown = this.shown.filter((toast) => toast.id !== id);
  }

  #add(toast: Omit<Toast, 'id'>): number {
    const id = this.#next;
    this.#next += 1;
    this.shown = [...this.shown.slice(-3), { id, ...toast }];
    return id;
  }
}

export const toasts = new Toasts();
