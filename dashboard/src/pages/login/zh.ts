import type { Catalogue } from '../../i18n/index.svelte';
import type english from './en';

const chinese: Catalogue<keyof typeof english> = {
  title: '登录',
  lead: '这是 {host} 上的服务器。',
  name: '用户名',
  password: '密码',
  code: '一次性验证码',
  'code.hint': '应用中的六位数字，或一个恢复码。',
  submit: '登录',
  busy: '正在登录…',
  or: '或者',
  oidc: '通过身份提供方登录',
  lost: '您的会话已结束。登录后回到原来的位置。',
  forgotten: '忘记密码？在服务器的机器上运行：',
  'no.admin': '此服务器还没有管理员。',
  'no.admin.text': '打开设置链接，创建第一个管理员。服务器启动时会打印此链接；以下命令打印一个新的链接：',
  problem: '{detail}。{remedy}。',
  wait: '{wait}后可以重试。',
  unreachable: '服务器没有应答。',
  again: '重试',
};

export default chinese;
