// The language of the page, and the texts of the parts of it.
import type { Language } from '../format/time';
import { fill, pieces, type Piece, type Values } from './texts';

/** Texts by their keys, the same keys in all languages. */
export type Catalogue<Keys extends string> = Readonly<Record<Keys, string>>;

const KEY = 'thrum-language';

/** How many catalogues were asked for and have not come yet. */
let awaited = 0;

class Locale {
  language = $state<Language>('en');
  /** How many catalogues have come: what says a text only once looks again after each. */
  came = $state(0);

  /** Whether the texts that the page has are those of its language. */
  isComplete(): boolean {
    return awaited === 0;
  }

  choose(language: Language): void {
    this.language = language;
    document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en';
    try {
      localStorage.setItem(KEY, language);
    } catch {
      // Without storage the choice holds for this page.
    }
  }

  /** Chooses the other one. */
  turn(): void {
    this.choose(this.language === 'en' ? 'zh' : 'en');
  }

  /** Takes the language that was chosen before, else that of the browser. */
  restore(): void {
    let chosen: string | null = null;
    try {
      chosen = localStorage.getItem(KEY);
    } catch {
      // Without storage the language is that of the browser.
    }
    const wanted = chosen ?? navigator.language;
    this.language = wanted.startsWith('zh') ? 'zh' : 'en';
    document.documentElement.lang = this.language === 'zh' ? 'zh-CN' : 'en';
  }
}

export const locale = new Locale();

/** The texts of a part of the dashboard. */
export interface Texts<Keys extends string> {
  (key: Keys, values?: Values): string;
  /** The text as pieces, for `Rich`. */
  rich(key: Keys, values?: Values): Piece[];
  /** As `rich`; `parts` are texts of ours with strong words, which are put in first. */
  joined(key: Keys, parts: Values, values?: Values): Piece[];
  /** The text of a key that only the broker knows; `otherwise` if there is none. */
  maybe(key: string, otherwise: string): string;
}

/** What is loaded when a page is first shown in Chinese; null until then, and in English. */
export function inChinese<T>(load: () => Promise<T>): () => T | null {
  let loaded = $state.raw<T | null>(null);
  let asked = false;
  return () => {
    if (locale.language === 'en') return null;
    if (!asked) {
      asked = true;
      awaited += 1;
      const came = () => {
        awaited -= 1;
        locale.came += 1;
      };
      void load()
        .then((found) => (loaded = found))
        .finally(came);
    }
    return loaded;
  };
}

/** Texts in English at once, and in Chinese as soon as they are loaded. */
export function texts<Keys extends string>(
  english: Catalogue<Keys>,
  chinese: () => Promise<Catalogue<Keys>>,
): Texts<Keys> {
  const loaded = inChinese(chinese);
  const catalogue = () => loaded() ?? english;
  const known = (key: string): key is Keys => Object.hasOwn(english, key);
  const text = (key: Keys, values?: Values) => fill(catalogue()[key], values);
  return Object.assign(text, {
    rich: (key: Keys, values?: Values) => pieces(catalogue()[key], values),
    joined: (key: Keys, parts: Values, values?: Values) => pieces(fill(catalogue()[key], parts), values),
    maybe: (key: string, otherwise: string) => (known(key) ? catalogue()[key] : otherwise),
  });
}
