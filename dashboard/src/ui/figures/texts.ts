import { texts } from '../../i18n/index.svelte';
import english from './en';

/** What each figure is. */
export const t = texts(english, () => import('./zh').then((found) => found.default));
