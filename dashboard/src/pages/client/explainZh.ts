// What would happen to a packet, in Chinese. The broker names what it looks at; its sentences have the figures.
import type { Schemas } from '../../api/client';
import { count } from '../../format/numbers';
import { reasonOf } from '../../ui/reasonsZh';

type Step = Schemas['ExplainedStep'];
type Receiver = Schemas['ExplainedReceiver'];

const CHECKS: Readonly<Record<string, string>> = {
  access: '权限',
  name: '名称',
  limit: '上限',
  mount_point: '挂载点',
  reserved: '保留主题',
  disk: '磁盘',
  sinks: '数据输出',
};

const VERBS: Readonly<Record<string, string>> = { allowed: '允许', denied: '拒绝', 'not decided': '未决定' };

/** Sentences of steps; `verb` is what the rules decide. */
const STEPS: readonly (readonly [RegExp, (...parts: string[]) => string])[] = [
  [/^the client may do everything$/, () => '客户端可以做任何操作'],
  [/^(allowed|denied|not decided) by the rules$/, (verb) => `规则${verb}`],
  [
    /^(allowed|denied|not decided) by acl\.default: no rule matches$/,
    (verb) => `没有匹配的规则，acl.default ${verb}`,
  ],
  [/^no rule decides: a backend has to be asked$/, () => '没有规则决定：需要询问后端'],
  [/^(allowed|denied|not decided) by an earlier answer of a backend$/, (verb) => `后端较早的回答${verb}`],
  [/^(allowed|denied|not decided): (.+)$/, (verb, rule) => `${verb}：${rule}`],
  [/^the name is valid$/, () => '名称有效'],
  [/^the name is not valid$/, () => '名称无效'],
  [/^(\S+) is (.+), (?:and|but) this has (.+)$/, (key, most, has) => `${key} 为 ${most}，此处为 ${has}`],
  [/^no limit of subscriptions is reached$/, () => '没有达到订阅的上限'],
  [/^it is not available, or the disk is full$/, () => '不可用，或磁盘已满'],
  [/^the limit (\S+) is reached$/, (key) => `已达上限 ${key}`],
  [/^with the mount point it is (.+)$/, (name) => `加上挂载点后为 ${name}`],
  [/^(.+) does not fit behind the mount point$/, (name) => `${name} 不能放在挂载点之后`],
  [/^the topic is not one of the broker$/, () => '不是服务器的主题'],
  [/^the disk has room$/, () => '磁盘有空间'],
  [
    /^the disk is full: it is refused if a durable session is to get it$/,
    () => '磁盘已满：如果要发给持久会话，则被拒绝',
  ],
  [/^the disk is full$/, () => '磁盘已满'],
  [/^no sink refuses it$/, () => '没有数据输出拒绝'],
  [/^a sink is full and refuses it$/, () => '一个数据输出已满并拒绝'],
];

/** What a step looks at. */
export function checkOf(step: Step): string {
  return CHECKS[step.check] ?? step.check;
}

/** A step in words; null for one that this page does not know. */
export function stepOf(step: Step): string | null {
  for (const [form, words] of STEPS) {
    const [, first = '', ...others] = form.exec(step.text) ?? [];
    if (form.test(step.text)) return words(VERBS[first] ?? first, ...others);
  }
  return reasonOf(step.text);
}

const DROPPED: Readonly<Record<string, string>> = {
  queue_full: '队列已满（limits.client.queue）',
  slow_consumer: 'QoS 0，客户端接收过慢（limits.output_bytes）',
  offline: 'QoS 0，客户端离线',
  too_large: '超过客户端的最大报文长度',
  outside_mount: '在客户端的挂载点之外',
  not_allowed: '规则不允许客户端接收',
  memory_short: '服务器内存不足（limits.memory）',
};

/** What a session would do with a message; null for an outcome that this page does not know. */
export function receiverOf(receiver: Receiver): string | null {
  const { queue } = receiver;
  const waits = `${count(queue.queued.messages)} / ${count(queue.limit.messages)} 条消息等待`;
  switch (receiver.outcome) {
    case 'sent':
      return '立即发送';
    case 'queued':
      return queue.connected
        ? `进入队列：${count(queue.inflight)} 条消息未确认，${waits}`
        : `进入队列，直到客户端恢复连接：${waits}`;
    case 'queued_for_older':
      return `进入队列，并丢弃最旧的消息：${waits}`;
    case 'held':
      return `发布者等待队列空间：${waits}`;
    case 'dropped': {
      const why = DROPPED[receiver.drop_reason ?? ''];
      if (why === undefined) return null;
      const away = queue.connected ? '' : '；客户端离线';
      return receiver.drop_reason === 'queue_full' ? `丢弃：${why}，${waits}${away}` : `丢弃：${why}`;
    }
    case 'passed_over':
      return reasonOf(receiver.text);
    default:
      return null;
  }
}
