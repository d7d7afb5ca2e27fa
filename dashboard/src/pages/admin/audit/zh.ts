import type { Catalogue } from '../../../i18n/index.svelte';
import type english from './en';

const chinese: Catalogue<keyof typeof english> = {
  soon: '此标签页尚未完成。',
};

export default chinese;
