// What an alarm says and what to do, in Chinese. In English the page shows the words of the broker.
import type { Schemas } from '../../api/client';
import { count, joined, memory, traffic } from '../../format/numbers';
import shared from '../../i18n/zh';

/** What is the case, and what to do. */
export interface Told {
  what: string;
  fix: string;
}

type Alarm = Pick<Schemas['Alarm'], 'name' | 'of' | 'arguments'>;

function isReason(value: unknown): value is { reason: string; messages: number } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'reason' in value &&
    typeof value.reason === 'string' &&
    'messages' in value &&
    typeof value.messages === 'number'
  );
}

/** The arguments of an alarm, in the form of the page. */
class Values {
  readonly #all: Alarm['arguments'];

  constructor(alarm: Alarm) {
    this.#all = alarm.arguments;
  }

  number(name: string): number | null {
    const value = this.#all[name];
    return typeof value === 'number' ? value : null;
  }

  count(name: string): string {
    return count(this.number(name));
  }

  memory(name: string): string {
    return joined(memory(this.number(name)));
  }

  traffic(name: string): string {
    return joined(traffic(this.number(name)));
  }

  text(name: string): string {
    const value = this.#all[name];
    return typeof value === 'string' ? value : '—';
  }

  list(name: string): string {
    const value = this.#all[name];
    return Array.isArray(value) ? value.map(String).join('、') : '—';
  }

  /** The most frequent reasons, with their numbers if there are several; "drop" or "refusal" is what has them. */
  reasons(of: 'drop' | 'refusal'): string {
    const value = this.#all['reasons'];
    const found = Array.isArray(value) ? value.filter(isReason) : [];
    if (found.length === 0) return '';
    const words: Readonly<Record<string, string>> = shared;
    const told = found.map(({ reason, messages }) => {
      const name = words[`${of}.${reason}`] ?? reason;
      return found.length === 1 ? name : `${name} ${count(messages)} 条`;
    });
    return `：${told.join('；')}`;
  }

  has(name: string): boolean {
    return this.#all[name] !== undefined && this.#all[name] !== null;
  }
}

function queues(values: Values): Told {
  const full = (values.number('queue_percent') ?? 0) >= 100;
  const then = full ? '发给已满队列的消息会被丢弃' : '队列满后消息会被丢弃';
  const fullness = full
    ? `已满（${values.count('queued_messages')} 条，共 ${values.count('queue_limit')} 条）`
    : `占用 ${values.count('queue_percent')} %（${values.count('queued_messages')} 条，共 ${values.count('queue_limit')} 条）`;
  if (values.number('clients') === 1 && values.has('client_id'))
    return values.has('away_secs')
      ? {
          what: `一个客户端的队列${fullness}，且该客户端离线；${then}`,
          fix: '让它恢复连接；如果没有人需要这些消息，则结束它的会话。更短的会话过期时间或消息过期时间会限制为它保留的内容',
        }
      : {
          what: `一个客户端的队列${fullness}；${then}`,
          fix: '让它更快地读取或更早地确认，或者调高 limits.client.queue',
        };
  const fullest = values.has('client_id') ? `；最满的${fullness}` : '';
  return {
    what: `${values.count('clients')} 个客户端的队列至少占用五分之四${fullest}；${then}`,
    fix: '让离线的客户端恢复连接，或结束它们的会话；让在线的客户端更快地读取，或者调高 limits.client.queue',
  };
}

function disk(alarm: Alarm, values: Values): Told {
  return alarm.of === 'free'
    ? {
        what: `node.data_dir 所在磁盘只剩 ${values.traffic('free_bytes')}`,
        fix: '删除那里的其他文件，或把 node.data_dir 移到更大的磁盘',
      }
    : {
        what: `持久状态占用 storage.max_disk 的 ${values.count('percent')} %，达到 75 % 时拒绝新的状态`,
        fix: '调高 storage.max_disk（重启后生效），或结束旧的会话',
      };
}

function connections(alarm: Alarm, values: Values): Told {
  const used = `的 ${values.count('percent')} % 已使用：${values.count('used')}，上限 ${values.count('limit')}`;
  return alarm.of === null
    ? {
        what: `limits.connections ${used}`,
        fix: '调高 limits.connections 和打开文件数的上限（ulimit -n、LimitNOFILE=）',
      }
    : { what: `监听器 ${alarm.of} 的 max_connections ${used}`, fix: '调高该监听器的 max_connections' };
}

const TOLD: Readonly<Record<string, (values: Values, alarm: Alarm) => Told>> = {
  audit_log_failing: (values) => ({
    what: `无法写入审计日志，因此不能做任何更改：${values.text('reason')}`,
    fix: '在 node.data_dir 所在磁盘上腾出空间',
  }),
  certificate_expired: (values) => ({
    what: `证书 ${values.text('file')} 已于 ${values.text('until')} 过期：客户端会拒绝它`,
    fix: '更新证书并重新读取',
  }),
  certificate_expires_soon: (values) => ({
    what: `证书 ${values.text('file')} 在 ${values.count('days')} 天后到期（${values.text('until')}）`,
    fix: '更新证书；新文件会自动读取（tls.reload_interval），重新加载则立即读取',
  }),
  clock_stepped: (values) => ({
    what: `这台机器的时钟跳变了 ${values.count('seconds')} 秒`,
    fix: '让 chrony 或 systemd-timesyncd 缓慢地校准；会话和消息的过期时间以它为准',
  }),
  connections_near_limit: (values, alarm) => connections(alarm, values),
  cpu_busy: (values) => ({
    what: `服务器占用了这台机器所有核心的 ${values.count('percent')} %`,
    fix: '找出发送最多的客户端；使用更多核心，或 limits.client.messages',
  }),
  disk_nearly_full: (values, alarm) => disk(alarm, values),
  drops_going_on: (values) => ({
    what: `${values.count('seconds')} 秒内丢弃了 ${values.count('messages')} 条消息${values.reasons('drop')}`,
    fix: '找出没有收到消息的客户端和原因：十秒的测量会同时给出两者',
  }),
  memory_near_limit: (values) => ({
    what: `服务器使用了 ${values.memory('used')}，limits.memory 为 ${values.memory('limit')}；达到 80 % 后会放慢读取发布者`,
    fix: '找出队列很长的客户端；如果机器有更多内存，则调高 limits.memory',
  }),
  open_files_near_limit: (values) => ({
    what: `进程打开文件数的 ${values.count('percent')} % 已使用：${values.count('used')}，上限 ${values.count('limit')}`,
    fix: '调高打开文件数的上限（ulimit -n、systemd 的 LimitNOFILE=）并重启',
  }),
  overload: (values) => ({
    what: `工作线程 ${values.list('workers')} 暂不接受新连接，或放慢读取发布者：每一轮耗时过长，或内存不足`,
    fix: '找出原因；限制发布者的速率，或使用更多核心',
  }),
  queues_nearly_full: (values) => queues(values),
  refusals_going_on: (values) => ({
    what: `${values.count('seconds')} 秒内拒绝了 ${values.count('messages')} 条发布${values.reasons('refusal')}`,
    fix: '找出这些发布者和原因：被拒绝的发布按客户端和主题列出',
  }),
  reload_failed: (values) => ({
    what: `配置未能重新加载，之前的配置仍然有效：${values.text('reason')}`,
    fix: '更正后重新加载',
  }),
  sink_not_delivering: (values, alarm) => ({
    what: `数据出口 ${alarm.of ?? ''} 已有 ${values.count('stuck_secs')} 秒没有写出，${values.count('waiting')} 条消息在等待，${values.count('failures')} 次写入失败`,
    fix: '查看它的目标：服务器的日志里有最近一次写入的错误',
  }),
  storage_failing: () => ({
    what: '写入磁盘失败：在写入成功之前，不会向持久会话确认任何内容',
    fix: '在服务器的日志和内核日志（dmesg）中查看 node.data_dir 所在磁盘的错误',
  }),
  storage_full: () => ({
    what: '存储已满：拒绝持久会话、发给它们的消息和保留消息（0x97）',
    fix: '在 node.data_dir 所在磁盘上腾出空间，或调高 storage.max_disk 并重启',
  }),
};

/** Null for an alarm that this page does not know. */
export function told(alarm: Alarm): Told | null {
  return TOLD[alarm.name]?.(new Values(alarm), alarm) ?? null;
}
