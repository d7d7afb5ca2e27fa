// Problems in Chinese: what this page says of them, and what the broker says of the usual ones. A sentence that is not
// here stays as the broker wrote it.

/** Titles, details and remedies by the words in English. */
const SENTENCES: Readonly<Record<string, string>> = {
  // Of the page.
  'no answer': '没有应答',
  'the broker does not answer': '服务器没有应答',
  'check that it runs and that the network reaches it; this page tries again':
    '检查它是否在运行、网络是否可达；页面会重试',
  'unexpected answer': '意外的应答',
  'look at the log of the broker, and at a proxy in front of it': '查看服务器的日志和它前面的代理',
  'not sent': '没有发送',
  'a browser cannot ask for something that is called "." or "..": it would ask for something else':
    '浏览器不能请求名为 "." 或 ".." 的内容：它会请求其他内容',
  'use the command of thrum on a terminal': '请在终端使用 thrum 的命令',
  'error of this page': '页面出错',
  'load the page again, and report this': '请重新加载页面，并报告此错误',

  // Titles.
  'a defect of the broker': '服务器的缺陷',
  'a file cannot be used': '文件不可用',
  'a run is under way': '测试正在进行',
  'answers wait': '应答在等待',
  'audit log not available': '审计日志不可用',
  'bad request': '请求有误',
  'benchmarks are turned off': '性能测试已关闭',
  'body not read': '没有读取请求体',
  'changed meanwhile': '已被更改',
  'code needed': '需要验证码',
  'counted already': '已在统计',
  'exists already': '已存在',
  'import incomplete': '导入不完整',
  'import too slow': '导入过慢',
  'listener removed': '监听器已移除',
  'login ended': '登录已结束',
  'message refused': '消息被拒绝',
  'method not allowed': '方法不允许',
  'no JSON': '不是 JSON',
  'no answer in time': '没有及时应答',
  'no answer of the broker': '服务器没有应答',
  'no backup now': '现在不能备份',
  'no benchmarks in this program': '此程序不含性能测试',
  'no data directory': '没有数据目录',
  'no events': '没有事件',
  'no history': '没有历史数据',
  'no retained message': '没有保留消息',
  'no room for another run': '没有空间进行另一个测试',
  'no room on the disk': '磁盘空间不足',
  'no such client': '没有这个客户端',
  'no such key': '没有这个键',
  'no such listener': '没有这个监听器',
  'no such route': '没有这个路径',
  'no such topic metric': '没有统计此过滤器',
  'no user store': '没有用户库',
  'not allowed': '不允许',
  'not available': '不可用',
  'not banned': '没有被封禁',
  'not done': '没有执行',
  'not done in time': '没有及时完成',
  'not found': '没有找到',
  'not logged in': '没有登录',
  'not now': '暂不可用',
  'not there': '不存在',
  'not written down': '没有写入',
  'request took too long': '请求用时过长',
  'the benchmark program failed': '性能测试程序失败',
  'the broker is stopping': '服务器正在停止',
  'the run cannot be started so': '测试不能这样开始',
  'the run has ended': '测试已结束',
  'the run is not changed': '测试没有更改',
  'the runs cannot be compared': '这些测试不能对比',
  'too many live lists': '实时列表过多',
  'too many live streams': '实时数据流过多',
  'too many measurements': '测量过多',
  'too many questions': '请求过多',
  'too many requests': '请求过多',
  'too many topic metrics': '统计的过滤器过多',
  'too many traces': '跟踪过多',
  'user store not available': '用户库不可用',
  'users not in force': '用户没有生效',
  'wrong login': '登录错误',
  'wrong API key': 'API 密钥错误',
  'too many wrong logins': '登录错误过多',
  'too many logins': '登录过多',
  'too many': '过多',
  'setup link not valid': '设置链接无效',
  'provider not available': '身份提供方不可用',
  'no role': '没有角色',
  'other login': '不是此次登录',
  'already set up': '已设置',
  'last administrator': '最后一个管理员',
  'login needed': '需要登录',
  'not permitted': '没有权限',
  'other origin': '其他来源',
  'no origin': '没有来源',
  'no token': '没有令牌',
  'no session': '没有会话',

  // Details.
  'this broker runs inside another program, which manages its configuration itself':
    '此服务器在另一个程序中运行，由该程序管理配置',
  'the name, the password or the code is wrong': '名称、密码或验证码错误',
  'this administrator also needs a one-time code': '此管理员还需要一次性验证码',
  'too many logins at the same time': '同时登录过多',
  'the request has neither a session nor an API key': '请求既没有会话也没有 API 密钥',
  'the session or the key of this request has ended': '此请求的会话或密钥已结束',
  'the setup link is wrong, was used, or a newer one was made': '设置链接有误、已使用，或已有更新的链接',
  'an administrator exists already': '已有管理员',
  'only an administrator with a session can do this': '只有已登录的管理员可以这样做',
  '2 measurements run already, and each looks at all clients': '已有 2 个测量在进行，每个都要查看所有客户端',

  // Remedies.
  'ask again in a second': '一秒后重试',
  'ask again later': '稍后重试',
  'ask again later; GET /api/v1/metrics shows the load of the broker':
    '稍后重试；GET /api/v1/metrics 显示服务器的负载',
  'ask again when one of them has ended': '其中一个结束后重试',
  'ask again when others are answered': '其他请求得到应答后重试',
  'choose another name, or change the one that is there': '使用其他名称，或更改已有的',
  'correct the request; GET /api/v1/openapi.json describes each route':
    '更正请求；GET /api/v1/openapi.json 说明了每个路径',
  'free space, or raise the limit': '腾出空间，或调高上限',
  'free space in the data directory, and ask again; nothing was changed':
    '在数据目录中腾出空间后重试；没有改变任何内容',
  'free space in the data directory; a change that cannot be written down is not made':
    '在数据目录中腾出空间；不能写入审计日志的更改不会执行',
  'list the bans with GET /api/v1/bans, and name one exactly: a network with its length':
    '用 GET /api/v1/bans 列出封禁，并给出准确的名称：网段要带长度',
  'list the clients with GET /api/v1/clients': '用 GET /api/v1/clients 列出客户端',
  'list the keys with GET /api/v1/config': '用 GET /api/v1/config 列出键',
  'list them with GET /api/v1/listeners': '用 GET /api/v1/listeners 列出监听器',
  'list them with GET /api/v1/retained': '用 GET /api/v1/retained 列出保留消息',
  'log in again, or show another key, and repeat the request': '请重新登录或使用其他密钥，然后重试',
  'make room in the data directory, or correct its owner and mode, and ask again':
    '在数据目录中腾出空间，或更正它的所有者和权限，然后重试',
  'mend what the error names; nothing was changed': '更正错误指出的内容；没有改变任何内容',
  'read it again, look at what is different, and send the change with its new etag':
    '重新读取并查看差别，然后用新的 etag 发送更改',
  'read the log of the broker': '查看服务器的日志',
  'set node.data_dir, or change the configuration file and reload':
    '设置 node.data_dir，或更改配置文件并重新加载',
  'set node.data_dir or auth.users in the configuration, and start the broker again':
    '在配置中设置 node.data_dir 或 auth.users，并重启服务器',
  'start it again': '重新启动它',
  'extend it by less, or wait for its end and start another one': '延长得少一些，或等它结束后再开始一个测试',
  'wait, and try again': '请稍后重试',
  'wait; addresses from which you have logged in before are not slowed by others':
    '请等待；您曾登录过的地址不受其他地址影响',
  "thrum admin setup-url on the broker's machine makes another link while there is no administrator":
    '在没有管理员时，在服务器的机器上运行 thrum admin setup-url 可生成新的链接',
  'look into the log of the broker; nothing was changed': '查看服务器的日志；没有改变任何内容',
  'try again later; the log of the provider may say more': '稍后重试；身份提供方的日志可能有更多信息',
  'ask an administrator to name one of your groups in management.oidc.viewers, operators or administrators':
    '请管理员把您的一个组加入 management.oidc.viewers、operators 或 administrators',
  "log in; thrum admin reset-password NAME on the broker's machine sets another password":
    '请登录；在服务器的机器上运行 thrum admin reset-password NAME 可设置新密码',
  "try again; thrum admin reset-password NAME on the broker's machine sets another password":
    '请重试；在服务器的机器上运行 thrum admin reset-password NAME 可设置新密码',
  'add another administrator first': '请先添加另一个管理员',
  'send another value; GET /api/v1/openapi.json describes each route':
    '请使用其他值；GET /api/v1/openapi.json 说明了每个路径',
  'send it as code: of the app, or a recovery code': '请输入应用中的验证码或恢复码',
  'log in, or send Authorization: Bearer with an API key': '请登录，或用 API 密钥发送 Authorization: Bearer',
  'list the keys with thrum keys ls, and make one with thrum keys add':
    '用 thrum keys ls 列出密钥，用 thrum keys add 添加',
  'ask an administrator for another role, or for a key with this scope':
    '请向管理员申请其他角色，或有此权限的密钥',
  'send it from a page of this broker; a proxy in front of it passes the header Host on':
    '请从此服务器的页面发送；它前面的代理要传递 Host 头',
  'log in with name and password': '请以名称和密码登录',
};

/** Details with a name or a number in them. */
const FORMS: readonly (readonly [RegExp, string])[] = [
  [/^the answer has the status (\d+) and no explanation$/, '应答的状态为 $1，没有说明'],
  [/^no session has the client identifier (".*")$/, '没有客户端标识为 $1 的会话'],
  [/^the topic (".*") has no retained message$/, '主题 $1 没有保留消息'],
  [
    /^all stages would last (\d+) s; management\.benchmarks\.duration allows (\d+) s$/,
    '所有阶段将持续 $1 秒；management.benchmarks.duration 允许 $2 秒',
  ],
  [/^the run has been changed (\d+) times$/, '此测试已更改 $1 次'],
  [/^(\d+) changes before it are not taken yet$/, '之前的 $1 个更改还没有被接收'],
  [/^the configuration has no listener (".*")$/, '配置中没有监听器 $1'],
  [/^the request needs the scope (\S+)$/, '请求需要权限 $1'],
  [/^too many wrong logins: the next one is possible in (\d+) s$/, '登录错误过多：$1 秒后可以重试'],
  [/^there is a user (".*") already$/, '已有用户 $1'],
  [/^(".*"|\S+) is not banned$/, '$1 没有被封禁'],
];

/** A sentence of a problem; one that is not known as it is. */
export function problems(text: string): string {
  const known = Object.hasOwn(SENTENCES, text) ? SENTENCES[text] : undefined;
  if (known !== undefined) return known;
  const form = FORMS.find(([pattern]) => pattern.test(text));
  return form ? text.replace(form[0], form[1]) : text;
}
