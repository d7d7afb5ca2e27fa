// Reasons that the broker writes, in the language of the page.
import { inChinese } from '../i18n/index.svelte';

const chinese = inChinese(() => import('./reasonsZh'));

/** A reason in the language of the page; one that is not known stays as the broker wrote it. */
export function reasonIn(text: string): string {
  return chinese()?.reasonOf(text) ?? text;
}

/** The name of a reason code in Chinese; null on an English page. */
export function codeNameIn(code: number): string | null {
  return chinese()?.codeName(code) ?? null;
}
