import type { Catalogue } from '../../i18n/index.svelte';
import type english from './en';

const chinese: Catalogue<keyof typeof english> = {
  say: '您已登录为 **{name}**。',
};

export default chinese;
