// What the program says about a run, in the language of the page.
import { sentence } from '../../format/sentence';
import { inChinese } from '../../i18n/index.svelte';

const chinese = inChinese(() => import('./verdictsZh').then((found) => found.verdictOf));

/** Without the full stop that a reason of the interface may have. */
export function bare(text: string | null | undefined): string {
  const words = (text ?? '').replace(/[.。]\s*$/, '');
  return chinese()?.(words) ?? words;
}

/** As a sentence. */
export function whole(text: string): string {
  const words = text.replace(/[.。]\s*$/, '');
  const told = chinese()?.(words);
  return told ? `${told}。` : sentence(text);
}
