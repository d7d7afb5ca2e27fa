// What the scenarios of the catalogue are called, in the language of the page.
import { inChinese } from '../../i18n/index.svelte';

const chinese = inChinese(() => import('./scenariosZh').then((found) => found.SCENARIOS));

interface Told {
  title: string;
  text: string;
}

export function inWords(scenario: Told & { name: string }): Told {
  const [title, text] = chinese()?.[scenario.name] ?? [scenario.title, scenario.text];
  return { title, text };
}
