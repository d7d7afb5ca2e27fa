// English that is left on a page in another language.
import type { Page } from '@playwright/test';

/** Where English is right: names, topics, code, log lines, and what is marked. */
const NAMES = 'code, pre, script, style, noscript, .mono, textarea, option, [translate="no"], [lang="en"]';
/** Attributes that are read or shown. */
const SPOKEN = ['aria-label', 'title', 'placeholder', 'alt', 'aria-valuetext', 'aria-description'];

/** The English sentences that a reader sees or hears: three words in a row or more. */
export function english(page: Page): Promise<string[]> {
  return page.evaluate(
    ([names, spoken]) => {
      const sentence = /[A-Za-z][a-z’']*(?:[ ,:;–-]+[A-Za-z][a-z’']*){2,}/;
      const found = new Set<string>();
      const look = (text: string | null, element: Element | null) => {
        if (
          text === null ||
          !sentence.test(text.replace(/`[^`]*`/g, '')) ||
          element === null ||
          element.closest(names) !== null
        )
          return;
        found.add(text.replace(/\s+/g, ' ').trim());
      };
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node !== null; node = walker.nextNode())
        look(node.nodeValue, node.parentElement);
      for (const element of document.body.querySelectorAll('*'))
        for (const name of spoken) look(element.getAttribute(name), element);
      return [...found];
    },
    [NAMES, SPOKEN] as const,
  );
}
