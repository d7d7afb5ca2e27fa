import type { Catalogue } from '../../i18n/index.svelte';
import type english from './en';

const chinese: Catalogue<keyof typeof english> = {
  bench: '目前性能测试在命令行中运行。',
  'bench.text': '此页面将列出测试、启动新的测试并实时显示。',
  data: '数据出口还没有页面。',
  'data.text': '数据出口把消息写入数据库和其他服务器；在服务器的配置文件中设置。',
};

export default chinese;
