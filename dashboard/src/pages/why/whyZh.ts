// Causes, what to do about them, and what limits an answer, in Chinese. In English the page shows the words of the broker.
import { count, figure, joined, memory, millis, percent } from '../../format/numbers';
import { span } from '../../format/time';
import { Evidence } from './evidence';

/** A cause, or something that is none, as the broker names it. */
interface Named {
  name: string;
  evidence: object;
}

/** Clients, topics and limits that a sentence names. */
const NAMED = 3;
/** Shorter times are no time: the broker measures them by two looks at its clock. */
const MILLIS_MIN = 0.00001;
/** Part of its segments that a client has sent again if its network loses them. */
const LOSSY = 0.01;
/** Part of the time from which on a machine is busy, and a worker waits for a CPU too long. */
const BUSY = 0.9;
const STARVED = 0.25;

const some = (names: readonly string[]) => names.slice(0, NAMED).join('、');
const clients = (number: number | null) => `${count(Math.max(1, number ?? 1))} 个客户端`;
const secs = (seconds: number | null) => span(seconds, 'zh');

function mean(ms: number | null): string {
  if (ms === null) return '没有测量';
  return ms < MILLIS_MIN ? '几乎不需要时间' : `平均 ${joined(millis(ms))}`;
}

/** What is known of a client that is behind. */
function behind(client: Evidence): string {
  const parts = [`${count(client.number('messages'))} 条消息等待`];
  const oldest = client.number('oldest_secs') ?? 0;
  const delay = client.number('delay_ms');
  if (oldest > 0) parts.push(`最早的已等待 ${secs(oldest)}`);
  else if (delay !== null) parts.push(`每条约 ${joined(millis(delay))}`);
  const roundTrip = client.number('round_trip_micros');
  if (roundTrip !== null) parts.push(`往返 ${joined(millis(roundTrip / 1000))}`);
  const output = client.number('output_bytes') ?? 0;
  if (output > 0) parts.push(`待写出 ${joined(memory(output))}`);
  const unsent = client.number('unsent_bytes') ?? 0;
  if (unsent > 0) parts.push(`套接字中 ${joined(memory(unsent))}`);
  return parts.join('，');
}

const named = (found: Evidence, words: (client: Evidence) => string) =>
  some(found.list('clients').map((client) => `${client.text('client_id') ?? ''}（${words(client)}）`));

function waiting(found: Evidence, none: string, what: string): string {
  const number = found.number('waiting_clients') ?? 0;
  return number === 0
    ? none
    : `${what}：${clients(number)}，${count(found.number('waiting_messages'))} 条消息`;
}

/** Who waits besides; empty if nobody does. */
function alsoWaiting(found: Evidence, what: string): string {
  const number = found.number('waiting_clients') ?? 0;
  return number === 0 ? '' : `；${what}：${clients(number)}`;
}

function slowReaders(found: Evidence): string {
  const number = found.number('waiting_clients') ?? 0;
  if (number > 0) return `${clients(number)}落后：${named(found, behind)}`;
  const full = found.number('full_sockets_ms') ?? 0;
  return full > 0 ? `套接字有一段时间已满：${mean(full)}` : '每个客户端都及时接收消息';
}

function fullWindows(found: Evidence): string {
  const number = found.number('waiting_clients') ?? 0;
  if (number > 0) {
    const words = (client: Evidence) => `窗口 ${count(client.number('inflight'))}，${behind(client)}`;
    return `${clients(number)}的窗口已满：${named(found, words)}`;
  }
  const queued = found.number('queued_ms') ?? 0;
  return queued >= MILLIS_MIN ? `消息在队列中等待，${mean(queued)}` : '没有消息等待其他消息的确认';
}

function networkLoss(found: Evidence): string {
  const machine = found.number('machine_resent_share');
  const all = machine === null ? '系统没有提供重传的分段数' : `这台机器 ${percent(machine)} 的分段重传`;
  const resent = (client: Evidence) => client.number('resent_share') ?? 0;
  const [worst] = found
    .list('clients')
    .filter((client) => resent(client) >= LOSSY)
    .sort((one, other) => resent(other) - resent(one));
  return worst
    ? `发给 ${worst.text('client_id') ?? ''} 的分段有 ${percent(resent(worst))} 重传；${all}`
    : all;
}

function disk(found: Evidence): string {
  const commits = found.number('commits');
  if (commits === null) return '此服务器把所有内容保存在内存中';
  const each = (found.number('commit_micros') ?? 0) / 1000 / Math.max(1, commits);
  const longest = found.number('longest_commit_micros_below');
  const most = longest === null ? '' : `，都不超过 ${joined(millis(longest / 1000))}`;
  const work =
    commits === 0
      ? '没有写入'
      : `${count(commits)} 次提交平均用时 ${joined(millis(each))}${most}，磁盘有 ${percent(found.number('busy_share'))} 的时间在工作`;
  const failing = found.is('healthy') === false ? '；磁盘已满或写入失败' : '';
  return `${work}${alsoWaiting(found, '等待磁盘')}${failing}`;
}

function routing(found: Evidence): string {
  const route = found.number('route_ms');
  if (route === null) return '没有测量到消息';
  const receivers = found.number('receivers_per_message');
  const each = receivers === null ? '' : `；每条消息 ${figure(receivers)} 个接收者`;
  return `查找接收者：${mean(route)}，写给之前的接收者：${mean(found.number('fan_out_ms'))}${each}`;
}

function mailboxes(found: Evidence): string {
  if (found.number('workers') === 1) return '只有 1 个工作线程，消息不需要转交';
  const way = mean(found.number('mail_ms'));
  return `转交到另一个工作线程：${way}，目前有 ${count(found.number('mail'))} 条消息在转交${alsoWaiting(found, '等待繁忙的工作线程')}`;
}

function authorization(found: Evidence): string {
  const asked = found.number('asked') ?? 0;
  const late = found.number('timeouts') ?? 0;
  return [
    `作出决定：${mean(found.number('decision_ms'))}`,
    asked > 0 ? `；询问后端 ${count(asked)} 次` : '',
    late > 0 ? `，其中 ${count(late)} 次没有及时应答` : '',
    alsoWaiting(found, '等待后端'),
  ].join('');
}

function rateLimits(found: Evidence): string {
  const pauses = found.list('pauses');
  const number = found.number('waiting_clients') ?? 0;
  if (pauses.length === 0 && number === 0) return '没有客户端用完速率';
  const reached =
    pauses.map((one) => `${one.text('limit') ?? ''} ${count(one.number('pauses'))} 次`).join('、') ||
    '某个速率';
  const names = named(found, (client) => `${count(client.number('messages'))} 条消息未读取`);
  return `达到限制：${reached}；期间暂不读取 ${clients(number)}${names === '' ? '' : `，${names}`}`;
}

function overload(found: Evidence): string {
  const level = found.number('memory_level') ?? 0;
  const late = found.number('late_workers') ?? 0;
  return [
    waiting(found, '没有减慢发布者', '减少读取发布者'),
    level === 0 ? '；内存充足' : `；内存不足（4 级中的第 ${level} 级）`,
    late > 0 ? `；工作线程有 ${count(late)} 次过慢` : '',
  ].join('');
}

function handshakes(found: Evidence): string {
  const full = found.number('workers_without_place') ?? 0;
  if (full > 0)
    return `${count(full)} 个工作线程已有 ${secs(found.number('without_place_secs'))}没有接受新连接，因为 ${count(found.number('handshakes_unfinished'))} 个握手没有完成`;
  const deferred = found.number('connections_deferred') ?? 0;
  const opened = `每秒 ${figure(found.number('connections_opened_per_second'))} 个新连接`;
  return deferred === 0
    ? `${opened}，没有推迟`
    : `${opened}；未完成的握手使新连接 ${count(deferred)} 次留在积压队列中`;
}

function cpu(found: Evidence): string {
  const parts: string[] = [];
  const running = found.number('worker_running_share');
  const ready = found.number('worker_ready_share');
  const busy = found.number('machine_busy_share');
  const stolen = found.number('machine_stolen_share');
  if (running !== null) parts.push(`最忙的工作线程有 ${percent(running)} 的时间在运行`);
  if (ready !== null)
    parts.push(
      `有 ${percent(ready)} 的时间等待 CPU（每次 ${joined(millis(found.number('worker_ready_ms')))}）`,
    );
  if (busy !== null) parts.push(`这台机器的 CPU 占用 ${percent(busy)}`);
  if (stolen !== null) parts.push(`虚拟化平台占用 ${percent(stolen)}`);
  if (busy !== null && busy > BUSY)
    parts.push(
      ready === null
        ? '工作线程是否等待 CPU 未知'
        : ready > STARVED
          ? '其他程序可能也需要 CPU'
          : '其他程序占用 CPU，但工作线程仍能很快得到',
    );
  return parts.length === 0 ? '系统没有提供 CPU 时间' : parts.join('，');
}

const FACTS: Readonly<Record<string, (found: Evidence) => string>> = {
  slow_readers: slowReaders,
  full_windows: fullWindows,
  network_loss: networkLoss,
  disk,
  routing,
  mailboxes,
  authorization,
  rate_limits: rateLimits,
  full_queues: (found) => waiting(found, '没有发布者等待队列空间', '发布者等待接收者的队列有空间'),
  overload,
  handshakes,
  cpu,
};

/** Why messages are dropped. */
const DROPPED: Readonly<Record<string, string>> = {
  queue_full_away: '离线客户端的队列已满',
  queue_full: '客户端的队列已满',
  queue_oldest: '客户端的队列已满，最旧的消息为新消息让位',
  queue_age: '在队列中等待超过 limits.client.queue_age',
  offline: '客户端离线，不为它保留 QoS 0 的消息',
  slow_consumer: '客户端没有接收它的输出，QoS 0 不等待',
  too_large: '超过客户端的最大报文长度',
  expired: '发送之前已过期',
  outside_mount: '主题在客户端的挂载点之外',
  not_allowed: '规则不允许客户端接收',
  memory_short: '内存不足',
  no_shared_member: '共享组没有成员接收',
  retained_refused: '需要保留，但已达到保留消息的上限',
  publish_denied: '规则或后端拒绝了 PUBLISH',
};

function dropped(words: string, found: Evidence): string {
  const of = found.list('of').map((one) => {
    const topic = one.text('topic');
    return `${one.text('client_id') ?? ''} ${count(one.number('messages'))} 条${topic === null ? '' : `（${topic}）`}`;
  });
  const away = found.list('away').map((one) => {
    const gone = one.number('away_secs') ?? 0;
    const expiry = one.number('session_expiry_secs');
    const kept = expiry === null ? '会话不过期' : `会话在 ${secs(Math.max(0, expiry - gone))}后过期`;
    return `${one.text('client_id') ?? ''} 已离线 ${secs(gone)}，${kept}，${count(one.number('queued_messages'))} 条消息等待`;
  });
  const more = away.length > NAMED ? `；另有 ${away.length - NAMED} 个` : '';
  return [
    words,
    of.length === 0 ? '' : `：${some(of)}`,
    away.length === 0 ? '' : `；${away.slice(0, NAMED).join('；')}${more}`,
  ].join('');
}

/** What a cause is, with its figures; null for one that this page does not know. */
export function sentenceOf(cause: Named): string | null {
  const found = new Evidence(cause.evidence);
  const words = DROPPED[cause.name];
  if (words !== undefined) return dropped(words, found);
  return FACTS[cause.name]?.(found) ?? null;
}

/** The first client that a cause names, for a command. */
function nameOf(found: Evidence): string {
  const name = found.list('clients')[0]?.text('client_id') ?? 'ID';
  return /^[\w.:/@-]+$/.test(name) ? name : 'ID';
}

const REMEDIES: Readonly<Record<string, (found: Evidence) => string>> = {
  slow_readers: (found) =>
    `\`thrum clients get ${nameOf(found)}\` 可查看该客户端；让它更快地读取，或把工作分给共享组（$share/GROUP/FILTER）的多个成员；limits.client.queue 和 limits.client.queue_policy 限制为它等待的内容`,
  full_windows: () =>
    '让客户端要求更大的接收最大值（上限为 limits.client.inflight），或更早地确认；共享组（$share/GROUP/FILTER）的多个成员各有一个窗口',
  network_loss: () => '检查服务器与客户端之间的链路；QoS 0 和更大的窗口受影响较小',
  disk: () =>
    '使用更快的磁盘（`thrum status` 显示其状态）；storage.durability = "os" 不等待磁盘，断电时会丢失最后几秒',
  routing: () =>
    '减少匹配该主题的订阅：`thrum clients ls --sort subscriptions`；共享组（$share/GROUP/FILTER）只发给一个成员',
  mailboxes: () =>
    'node.workers 与服务器可用的核心数相同，不要更多；limits.mailbox_messages 限制等待一个工作线程的内容',
  authorization: () =>
    '使用更快的后端，或在它之前由规则决定（acl.rules）；acl.cache 和 acl.cache_ttl 缓存后端的回答',
  rate_limits: () =>
    '提高达到的速率（limits.client、limits.user、limits.address 或监听器的速率），或减少发布',
  full_queues: () =>
    '原因是落后的接收者：`thrum clients ls --sort queued-messages`；加大 limits.client.queue，或使用 "hold" 以外的 limits.client.queue_policy',
  overload: () => '更多内存（limits.memory）或核心（node.workers），或减少消息',
  handshakes: (found) =>
    (found.number('workers_without_place') ?? 0) > 0
      ? '开始握手而没有继续的连接在 limits.handshake_timeout 内占用位置：调低它，调高 limits.handshakes，并用 limits.address.connects 限制一个地址打开的连接；日志有握手过久的地址'
      : '让客户端随机等待后再重连；limits.connect_rate 会分散它们',
  cpu: (found) =>
    (found.number('worker_ready_share') ?? 0) > 0.1
      ? '其他程序或虚拟化平台占用了服务器的 CPU：为它分配专用的 CPU'
      : '使用更多核心（node.workers），或减少消息；`thrum clients ls --sort messages-received` 显示谁发布最多',
  queue_full_away: (found) => {
    const away = found.list('away');
    const only = away.length === 1 ? (away[0]?.text('client_id') ?? null) : null;
    return `让${only === null ? '这些客户端' : ` ${only} `}恢复连接；如果没有人需要这些消息，则结束会话；更短的会话过期时间（客户端的，或 limits.session_expiry）和消息过期时间（发布者的，或 limits.client.queue_age）会限制为离线客户端保留的内容`;
  },
  queue_full: () =>
    '让客户端更快地读取或更早地确认（`thrum why slow`）；调高 limits.client.queue；共享组的多个成员各有一个队列',
  queue_oldest: () => '让客户端更快地读取或更早地确认（`thrum why slow`）；调高 limits.client.queue',
  queue_age: () => '调高 limits.client.queue_age，或让客户端更早地恢复连接',
  offline: () => '以 QoS 1 发布和订阅，或设置 limits.client.queue_qos0',
  slow_consumer: () =>
    '让客户端更快地读取（`thrum why slow`）；以 QoS 1 发布和订阅；为突发调高 limits.output_bytes',
  too_large: () => '调高客户端要求的最大报文长度，或发布更小的消息',
  expired: () => '调高发布者的消息过期间隔，或让客户端更早地读取',
  outside_mount: () => '比较主题与监听器的 mount_point',
  not_allowed: () => '`thrum acl test CLIENT sub TOPIC` 显示对应的规则',
  memory_short: () =>
    '调高 limits.memory，或限制等待的内容：limits.client.queue 和 limits.client.queue_bytes',
  no_shared_member: () => '让一个成员连接，或加大它的队列：`GET /api/v1/groups` 显示每个成员的积压',
  retained_refused: () => '调高 limits.retained_messages 或 limits.retained_bytes，或删除旧的保留消息',
  publish_denied: () => '`thrum acl test CLIENT pub TOPIC` 显示对应的规则；日志有客户端的名称',
};

/** What to do about a cause, with `commands`; null for one that this page does not know. */
export function remedyOf(cause: Named): string | null {
  return REMEDIES[cause.name]?.(new Evidence(cause.evidence)) ?? null;
}

const UNTIMED = '没有任何一次送达被计时';
const UNCONNECTED = '没有客户端在线';
const UNMEASURED: Readonly<Record<string, string>> = {
  slow_readers: UNCONNECTED,
  full_windows: UNCONNECTED,
  network_loss: UNCONNECTED,
  rate_limits: UNCONNECTED,
  full_queues: UNCONNECTED,
  overload: UNCONNECTED,
  routing: UNTIMED,
  mailboxes: UNTIMED,
  authorization: UNTIMED,
  cpu: '系统没有提供 CPU 时间',
};

/** Why something was not measured; `late` if no worker answered. Null for what this page does not know. */
export function unmeasuredOf(name: string, late: boolean): string | null {
  if (DROPPED[name] !== undefined)
    return late ? '没有测量：工作线程没有应答' : '没有测量：发给离线客户端的 QoS 0 消息只对整个服务器计数';
  const why = UNMEASURED[name];
  return why === undefined ? null : `没有测量：${why}`;
}

/** The figure that tells that something is not the cause; null for what this page does not know. */
export function notCauseOf(other: Named): string | null {
  return DROPPED[other.name] === undefined ? sentenceOf(other) : '没有消息';
}

const NOTES: Readonly<Record<string, (found: Evidence) => string>> = {
  workers_late: () => '一些工作线程没有及时应答：它们已过载，其中等待和丢弃的消息未知',
  not_stamped: () => '消息没有打时间戳（node.stamp_messages = 0）：不等待的消息所用的时间未知',
  few_deliveries: (found) =>
    `测量到 ${count(found.number('measured_deliveries'))} 次送达，因为每 ${count(found.number('stamped_every'))} 条消息只有一条打时间戳：占比是粗略的；调低 node.stamp_messages 可测量更多`,
  away_not_counted: (found) => `${count(found.number('messages'))} 条消息等待离线的客户端，不计入延迟`,
  offline_not_counted: () =>
    '客户端离线时丢弃的 QoS 0 消息只对整个服务器计数：不限定客户端和主题的测量有这一项',
  topic_in_part: () => '没有主题的丢弃不计入，时间是服务器所有消息的时间按比例计算',
};

/** What limits an answer; null for what this page does not know. */
export function noteOf(limitation: Named): string | null {
  return NOTES[limitation.name]?.(new Evidence(limitation.evidence)) ?? null;
}
