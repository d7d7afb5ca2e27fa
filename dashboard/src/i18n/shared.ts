import english from './en';
import { texts } from './index.svelte';

/** The texts of the shell and of shared parts. */
export const t = texts(english, () => import('./zh').then((found) => found.default));
