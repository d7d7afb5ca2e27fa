// Light and dark: that of the system until another one is chosen. `public/theme.js` sets it before the first paint.
export type Chosen = 'light' | 'dark';

class Theme {
  chosen = $state<Chosen | null>(null);
  #system = $state<Chosen>('light');

  get dark(): boolean {
    return (this.chosen ?? this.#system) === 'dark';
  }

  start(): () => void {
    const set = document.documentElement.dataset['theme'];
    if (set === 'light' || set === 'dark') this.chosen = set;
    const media = window.matchMedia('(prefers-color-scheme: dark)');
    const look = () => (this.#system = media.matches ? 'dark' : 'light');
    look();
    media.addEventListener('change', look);
    return () => media.removeEventListener('change', look);
  }

  turn(): void {
    this.choose(this.dark ? 'light' : 'dark');
  }

  /** Null follows the system. */
  choose(theme: Chosen | null): void {
    this.chosen = theme;
    if (theme === null) delete document.documentElement.dataset['theme'];
    else document.documentElement.dataset['theme'] = theme;
    try {
      if (theme === null) localStorage.removeItem('thrum-theme');
      else localStorage.setItem('thrum-theme', theme);
    } catch {
      // Without storage the choice holds for this page.
    }
  }
}

export const theme = new Theme();
