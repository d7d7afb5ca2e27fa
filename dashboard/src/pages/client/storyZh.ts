// The timeline of a client in Chinese. In English the page shows the words of the broker.
import { count } from '../../format/numbers';
import { span } from '../../format/time';
import { codeName, hex, reasonOf, withCode } from '../../ui/reasonsZh';
import type { Event, Told } from './story';

type Ending = Extract<Event, { event: 'disconnected' }>['cause'];
type Refusal = Extract<Event, { event: 'publish_refused' }>['cause'];
type SessionEnd = Extract<Event, { event: 'session_ended' }>['cause'];
type Connected = Extract<Event, { event: 'connected' }>;

const time = (seconds: number) => span(seconds, 'zh');

const DROPPED: Readonly<Record<string, string>> = {
  queue_full: '队列已满（limits.client.queue）',
  queue_oldest: '队列已满，最旧的消息为新消息让位（limits.client.queue_policy）',
  queue_age: '在队列中等待过久（limits.client.queue_age）',
  offline: 'QoS 0，客户端离线',
  slow_consumer: 'QoS 0，客户端接收过慢（limits.output_bytes）',
  too_large: '超过客户端的最大报文长度',
  expired: '投递之前已过期',
  outside_mount: '在客户端的挂载点之外',
  not_allowed: '规则不允许客户端接收',
  memory_short: '服务器内存不足（limits.memory）',
};

function connected(event: Connected): Told {
  const keep = event.keep_alive_secs === 0 ? '不保活' : `保活 ${event.keep_alive_secs} 秒`;
  const session = event.session_present ? '会话继续' : '新会话';
  const expiry =
    event.session_expiry_secs === null
      ? '不过期'
      : event.session_expiry_secs === 0
        ? '随连接结束'
        : `离线 ${time(event.session_expiry_secs)}后过期`;
  return {
    head: `从 ${event.peer} 连接`,
    rest: `监听器 ${event.listener}，MQTT ${event.protocol_version}，${keep}；${session}，${expiry}`,
  };
}

function ending(cause: Ending): string | null {
  switch (cause.kind) {
    case 'by_client':
      return cause.with_will ? '客户端发送 DISCONNECT，并要求发布遗嘱' : '客户端发送 DISCONNECT';
    case 'lost':
      return '连接中断，没有 DISCONNECT';
    case 'keep_alive':
      return `保活超时：${time(cause.silent_millis / 1000)}没有收到任何报文（保活 ${cause.keep_alive_secs} 秒，最多 ${time(cause.keep_alive_secs * 1.5)}）`;
    case 'taken_over':
      return `被来自 ${cause.by} 的同一客户端标识的连接接管`;
    case 'by_broker':
      return `服务器关闭了连接：${withCode(cause.reason, cause.reason_code)}`;
    default:
      return null;
  }
}

function refusal(cause: Refusal): string | null {
  switch (cause.kind) {
    case 'rule':
      return `规则拒绝：${reasonOf(cause.rule) ?? cause.rule}`;
    case 'limit':
      return `已达上限 ${cause.limit}`;
    case 'other':
      return reasonOf(cause.reason) ?? cause.reason;
    default:
      return null;
  }
}

function sessionEnd(cause: SessionEnd): string | null {
  switch (cause.kind) {
    case 'expired':
      return `客户端离线 ${time(cause.session_expiry_secs)}，达到会话过期间隔`;
    case 'clean_start':
      return '客户端以全新会话重新连接';
    case 'by_operator':
      return '管理员结束了会话；审计日志有执行者';
    default:
      return null;
  }
}

const whole = (head: string, rest: string | null): Told | null => (rest === null ? null : { head, rest });

/** An event in words; null for one of a kind that this page does not know. */
export function told(event: Event): Told | null {
  switch (event.event) {
    case 'connected':
      return connected(event);
    case 'refused':
      return whole(`来自 ${event.peer} 的 CONNECT 被拒绝`, withCode(event.reason, event.reason_code));
    case 'disconnected': {
      const cause = ending(event.cause);
      const more = event.session_ended ? '；会话随连接结束' : '';
      return whole(`连接 ${time(event.connected_secs)}后断开`, cause === null ? null : `${cause}${more}`);
    }
    case 'session_ended':
      return whole('会话结束', sessionEnd(event.cause));
    case 'subscribed':
      return {
        head: `订阅 ${event.filter}，QoS ${event.qos}`,
        rest: event.in_part ? '规则只允许其中一部分主题' : '',
      };
    case 'subscription_refused': {
      const code = codeName(event.reason_code);
      const head = `订阅 ${event.filter} 被拒绝（${code === null ? '' : `${code}，`}${hex(event.reason_code)}）`;
      return whole(head, refusal(event.cause));
    }
    case 'unsubscribed':
      return { head: `取消订阅 ${event.filter}`, rest: '' };
    case 'subscription_revoked':
      return { head: `订阅 ${event.filter} 被撤销`, rest: '规则已改变' };
    case 'publish_refused':
      return whole(`向 ${event.topic} 的发布被拒绝`, refusal(event.cause));
    case 'dropped': {
      const over = (Date.parse(event.last_at) - Date.parse(event.at)) / 1000;
      const within = over > 0 ? `${time(over)}内` : '';
      return whole(`${within}丢弃 ${count(event.count)} 条消息`, DROPPED[event.reason] ?? null);
    }
    case 'slowed':
      return { head: '暂时不读取', rest: `${event.limit} 已用完` };
    case 'will_published':
      return { head: `遗嘱已发布到 ${event.topic}`, rest: '' };
    case 'will_dropped':
      return { head: `发往 ${event.topic} 的遗嘱没有发布`, rest: reasonOf(event.reason) ?? event.reason };
    default:
      return null;
  }
}
