import type { Catalogue } from '../../i18n/index.svelte';
import type english from './en';

const chinese: Catalogue<keyof typeof english> = {
  title: '设置管理员密码',
  lead: '此链接只能使用一次。完成之前无人可以登录。',
  name: '用户名',
  password: '密码',
  'password.short': '已输入 {n} 个字符，至少 12 个；可以是一句话。',
  'password.good': '很好：{n} 个字符。',
  submit: '完成并打开控制台',
  busy: '请稍候…',
  'no.link': '地址中没有设置链接。',
  'no.link.text': '请打开服务器打印的完整链接。在服务器的机器上运行以下命令可得到新的链接：',
  plain: '此页面未加密。请使用 TLS，或在服务器的机器上打开。',
  'plain.here': '此页面未加密，但来自**本机**。从其他地方访问请使用 TLS。',
  again: '新的链接：',
  problem: '{detail}。{remedy}。',
};

export default chinese;
