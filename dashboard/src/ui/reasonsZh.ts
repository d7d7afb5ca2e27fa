// Reason codes of MQTT 5.0, and the reasons that the broker writes beside them, in Chinese.

const CODES: Readonly<Record<number, string>> = {
  0x00: '成功',
  0x01: '已授予 QoS 1',
  0x02: '已授予 QoS 2',
  0x04: '断开连接并发布遗嘱',
  0x10: '没有匹配的订阅者',
  0x11: '订阅不存在',
  0x18: '继续认证',
  0x19: '重新认证',
  0x80: '未说明的错误',
  0x81: '报文格式错误',
  0x82: '协议错误',
  0x83: '实现特定的错误',
  0x84: '不支持的协议版本',
  0x85: '客户端标识无效',
  0x86: '用户名或密码错误',
  0x87: '未授权',
  0x88: '服务端不可用',
  0x89: '服务端繁忙',
  0x8a: '已被封禁',
  0x8b: '服务端正在关闭',
  0x8c: '认证方法错误',
  0x8d: '保活超时',
  0x8e: '会话被接管',
  0x8f: '主题过滤器无效',
  0x90: '主题名无效',
  0x91: '报文标识符已被占用',
  0x92: '找不到报文标识符',
  0x93: '超过接收最大值',
  0x94: '主题别名无效',
  0x95: '报文过大',
  0x96: '消息速率过高',
  0x97: '超出配额',
  0x98: '管理操作',
  0x99: '载荷格式无效',
  0x9a: '不支持保留消息',
  0x9b: '不支持的 QoS',
  0x9c: '使用其他服务端',
  0x9d: '服务端已迁移',
  0x9e: '不支持共享订阅',
  0x9f: '超出连接速率限制',
  0xa0: '超出最长连接时间',
  0xa1: '不支持订阅标识符',
  0xa2: '不支持通配符订阅',
};

const REASONS: Readonly<Record<string, string>> = {
  'AUTH that answers no challenge': 'AUTH 没有对应的质询',
  'AUTH with another authentication method than CONNECT': 'AUTH 的认证方法与 CONNECT 不同',
  'AUTH without a challenge': 'AUTH 没有对应的质询',
  'AUTH without authentication method': 'AUTH 没有认证方法',
  'AUTH out of turn': 'AUTH 不合时序',
  'MQTT 3.1 requires a client identifier': 'MQTT 3.1 要求客户端标识',
  'PUBACK for a message with QoS 2': '用 PUBACK 确认 QoS 2 消息',
  'PUBCOMP before PUBREL': 'PUBREL 之前收到 PUBCOMP',
  'PUBLISH without packet identifier': 'PUBLISH 没有报文标识符',
  'PUBREC for a message with QoS 1': '用 PUBREC 确认 QoS 1 消息',
  'PUBREL before PUBREC': 'PUBREC 之前收到 PUBREL',
  'QoS above the maximum QoS': 'QoS 超过允许的最大值',
  'a client identifier is required (limits.allow_zero_length_clientid)':
    '必须有客户端标识（limits.allow_zero_length_clientid）',
  'a session without client identifier must be clean': '没有客户端标识时必须使用全新会话',
  'a sink of the broker is full': '服务器的一个数据输出已满',
  'a sink of the broker is full: the message cannot be kept': '服务器的一个数据输出已满：无法保存消息',
  'a subscription is no longer allowed: the rules have changed': '规则已改变，不再允许其中一个订阅',
  'a user name and a password are needed': '需要用户名和密码',
  'an UNSUBSCRIBE with more filters than the server takes (limits.packet_filters)':
    'UNSUBSCRIBE 的过滤器超过上限（limits.packet_filters）',
  'another connection uses this client identifier': '另一个连接使用相同的客户端标识',
  'authentication is not available, try again later': '认证暂不可用，请稍后重试',
  'authentication method not supported': '不支持的认证方法',
  'bad user name or password': '用户名或密码错误',
  'banned by an operator of the broker': '被管理员封禁',
  'client identifier longer than the limit': '客户端标识超过长度上限',
  'clients without credentials are no longer admitted from here (auth.anonymous)':
    '不再接受来自此处的匿名客户端（auth.anonymous）',
  'disconnected by an operator of the broker': '被管理员断开',
  'empty topic name': '主题名为空',
  'enhanced authentication is no longer set up': '增强认证已不再配置',
  'field over 65,535 bytes': '字段超过 65 535 字节',
  'it is no filter: $share is the prefix of shared subscriptions': '不是过滤器：$share 是共享订阅的前缀',
  'its client is no longer admitted': '不再接受该客户端',
  'maximum packet size leaves no room for a reply': '最大报文长度不足以容纳应答',
  'memory is short: no session that takes more of it is admitted (limits.memory)':
    '内存不足：不接受占用更多内存的会话（limits.memory）',
  'more unacknowledged messages than the receive maximum': '未确认的消息超过接收最大值',
  'no enhanced authentication is set up': '没有配置增强认证',
  "not authorized to publish the will's topic": '无权向遗嘱的主题发布',
  'not authorized to publish to this topic': '无权向此主题发布',
  'not authorized: the broker admits no clients without credentials from here (auth.anonymous in its configuration)':
    '未授权：服务器不接受来自此处的匿名客户端（配置项 auth.anonymous）',
  'nothing received for one and a half times the keep alive': '在 1.5 倍保活时间内没有收到任何报文',
  'only the topics that the rules allow are delivered': '只投递规则允许的主题',
  'packet before CONNACK': 'CONNACK 之前收到报文',
  'packet other than AUTH before CONNACK': 'CONNACK 之前收到 AUTH 以外的报文',
  'packet over the maximum packet size': '报文超过最大长度',
  'packet that only a server sends': '只能由服务端发送的报文',
  'packet too large': '报文过大',
  'retained messages are not available': '不支持保留消息',
  'second CONNECT': '重复的 CONNECT',
  'server reference from a client': '客户端发送了服务端参考',
  'session expiry in DISCONNECT but none in CONNECT': 'DISCONNECT 有会话过期间隔，而 CONNECT 没有',
  'shared subscriptions are turned off': '共享订阅已关闭',
  'subscription identifier from a client': '客户端发送了订阅标识符',
  'subscriptions with wildcards are turned off': '通配符订阅已关闭',
  "the address's limit of sessions is reached (limits.address.sessions)":
    '该地址的会话数已达上限（limits.address.sessions）',
  'the broker is shutting down': '服务器正在关闭',
  "the broker's disk is full": '服务器的磁盘已满',
  "the broker's disk is full: the message cannot be kept": '服务器的磁盘已满：无法保存消息',
  "the broker's limit of connections is reached (limits.connections)":
    '服务器的连接数已达上限（limits.connections）',
  "the broker's limit of sessions is reached (limits.sessions)": '服务器的会话数已达上限（limits.sessions）',
  'the client identifier does not have the required form (auth.client_id)':
    '客户端标识的格式不符合要求（auth.client_id）',
  'the client is banned': '客户端已被封禁',
  'the client may not publish to this topic': '客户端无权向此主题发布',
  'the first packet must be CONNECT': '第一个报文必须是 CONNECT',
  "the listener's mount point needs a name that this client does not have, or that no topic can hold":
    '监听器的挂载点需要此客户端没有或主题不能包含的名称',
  'the maximum packet size leaves no room for AUTH': '最大报文长度不足以容纳 AUTH',
  'the maximum packet size leaves no room for CONNACK': '最大报文长度不足以容纳 CONNACK',
  'the message was refused': '消息被拒绝',
  'the operator has closed the listener of this connection': '管理员关闭了此连接的监听器',
  "the rules have changed and the broker is reviewing the client's subscriptions: try again later":
    '规则已改变，服务器正在检查客户端的订阅：请稍后重试',
  'the server cannot check the credentials now, try again later': '服务器暂时无法检查凭据，请稍后重试',
  'the time for which the client was admitted is over': '客户端获准连接的时间已到',
  'the topic is reserved for the broker': '该主题保留给服务器使用',
  'the user may no longer log in': '用户不再允许登录',
  "the user's limit of sessions is reached (limits.user.sessions)":
    '该用户的会话数已达上限（limits.user.sessions）',
  "the will's payload is larger than limits.max_payload": '遗嘱的载荷超过 limits.max_payload',
  'this client identifier has a session of another user (auth.takeover)':
    '此客户端标识已有另一用户的会话（auth.takeover）',
  'too many logins at once, try again later': '同时登录过多，请稍后重试',
  'topic alias above the topic alias maximum': '主题别名超过主题别名最大值',
  'topic alias without a topic': '主题别名没有对应的主题',
  "topic name of the will is too long with the listener's mount point":
    '加上监听器的挂载点后，遗嘱的主题名过长',
  'topic name longer than the limit': '主题名超过长度上限',
  'topic name with more levels than the limit': '主题名的层数超过上限',
  'unsupported protocol version': '不支持的协议版本',
  'users have been added since this client connected: log in again': '此客户端连接之后添加了用户：请重新登录',
  'no rule allows any of it': '没有规则允许其中任何主题',
  'no rule allows it, and acl.default does not': '没有规则允许，acl.default 也不允许',
  'a backend denies it': '认证后端拒绝',
  // Why a client is not read, or gets nothing.
  'its window is full: messages wait until it acknowledges some': '窗口已满：消息等待它确认',
  'it does not take its output: messages wait in the queue, and QoS 0 is dropped':
    '它没有接收输出：消息在队列中等待，QoS 0 被丢弃',
  'it publishes to a worker that has too much to do': '它向过于繁忙的工作线程发布',
  'it publishes while memory is short or the broker is overloaded': '内存不足或服务器过载时它在发布',
  'it publishes while the storage has no room': '存储空间不足时它在发布',
  'it does not take the answers to what it sends': '它没有接收应答',
  'a backend decides about its next packet': '后端正在决定它的下一个报文',
  'it has used up a rate of messages or bytes': '它用完了消息或字节的速率',
  'what it publishes is for a queue that is full, and is waited for': '它发布的消息等待已满的队列',
  'its next packet waits for other workers': '它的下一个报文等待其他工作线程',
  'it publishes while more is to be written than a turn writes': '待写出的内容超过一轮时它在发布',
  'a message that it published waits for room in a queue': '它发布的一条消息等待队列空间',
  'it is the publisher, and has set No Local': '它是发布者，并设置了 No Local',
  'the rules do not allow it to receive this topic': '规则不允许它接收此主题',
};

/** The name of a reason code; null for one that MQTT does not define. */
export function codeName(code: number): string | null {
  return CODES[code] ?? null;
}

/** A reason in words; null for one that is not known. */
export function reasonOf(text: string): string | null {
  return Object.hasOwn(REASONS, text) ? (REASONS[text] ?? null) : null;
}

/** The byte of a reason code, as MQTT writes it. */
export function hex(code: number): string {
  return `0x${code.toString(16).padStart(2, '0')}`;
}

/** A reason with its code; of one that is not known, the name of the code and what the broker wrote. */
export function withCode(text: string, code: number): string {
  const known = reasonOf(text);
  if (known !== null) return `${known}（${hex(code)}）`;
  const name = codeName(code);
  return name === null ? `${text}（${hex(code)}）` : `${name}（${hex(code)}）：${text}`;
}
