// What the broker says of a key, in the language of the page.
import { inChinese } from '../../../i18n/index.svelte';
import type { Key } from './keys';
import { purpose, reasonOfDefault } from './schema';

export interface Words {
  /** What it is for. */
  purpose: string;
  /** Its default and the reason of it; empty without one. */
  why: string;
  /** What values there are. */
  expected: string;
}

const chinese = inChinese(() => import('./wordsZh'));

export function wordsOf(key: Key): Words {
  return (
    chinese()?.wordsOf(key) ?? {
      purpose: purpose(key.description),
      why: reasonOfDefault(key.description),
      expected: key.expected,
    }
  );
}

/** What a key is for that is not set yet, with its description in the schema; null if nothing is known of it. */
export function purposeOf(key: string, description: unknown): string | null {
  if (typeof description !== 'string') return null;
  return chinese()?.purposeOf(key) ?? purpose(description);
}
