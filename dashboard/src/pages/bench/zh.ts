import type { Catalogue } from '../../i18n/index.svelte';
import type english from './en';

const chinese: Catalogue<keyof typeof english> = {} as never;
export default chinese;
