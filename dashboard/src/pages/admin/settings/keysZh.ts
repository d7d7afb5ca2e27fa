// What each key is for, in Chinese: the key, `*` for a name of one's choice, and its text. What is behind `｜` is the
// reason of its default. In English the page shows the words of the broker.

const HASH = {
  algorithm:
    '哈希列的算法：`"auto"`（由哈希本身指明：`$argon2id$…`、`$2b$…`、`$pbkdf2-…`，以及 Mosquitto 的 `$6$` 和 `$7$`）、`"plain"`、`"sha256"`、`"sha512"`、`"pbkdf2-sha1"`、`"pbkdf2-sha256"` 或 `"pbkdf2-sha512"`；后六种为十六进制。',
  iterations: 'PBKDF2 的迭代次数，1 到 10 000 000。',
  salt_position:
    '密码和盐作为一段文本计算哈希时盐的位置：`"prefix"`、`"suffix"` 或 `"none"`。对 `"auto"` 和 PBKDF2 无效。',
};

const IN_FLIGHT = '同时进行的请求数上限，包括等待连接的请求；超出的请求视为错误，客户端被拒绝（0x89）。';
const CA = '用来验证服务器证书的证书文件（PEM）。';
const RULES_REFRESH = '规则使用多久后重新查询，以整秒计；0 表示在客户端连接期间一直使用。';
const TIMEOUT = '一次请求的时限，包括等待和建立连接。';
const READ_LESS = '超过速率后暂停读取，直到速率允许。0 表示不限制。';

export const KEYS: Readonly<Record<string, string>> = {
  'node.name': '节点的名称，用于启动信息和日志。｜只有一个节点时不需要其他名称',
  'node.data_dir':
    '重启后保留的状态所在的目录：过期间隔大于 0 的会话及其订阅和消息、遗嘱、保留消息。同一时间只能由一个服务器使用。｜不在磁盘上保存任何内容',
  'node.workers':
    '工作线程数，1 到 256，或 `"auto"`：进程可用的每个核心一个，双核机器上只用一个。每个线程拥有自己的连接和会话。｜线程多于核心只会增加切换',
  'node.busy_poll': '空闲的工作线程在休眠前轮询的时间。它会占用一个核心，省去唤醒的时间。｜立即休眠',
  'node.stamp_messages':
    '每多少个 PUBLISH 报文中有一个在经过服务器时打上时间戳，最大 1 000 000；这些时间是指标，每秒发布为 `$SYS/broker/stages`，`thrum bench` 也会报告。`1` 表示每条消息，`0` 表示都不打。｜开销不到处理一条消息的 0.2 %',
  'node.timeline_bytes':
    '每个工作线程用于客户端时间线的内存：客户端最近的事件及其原因，包括已离开的客户端。有新事件时，最久没有变化的时间线被遗忘。｜约 30 000 个客户端的事件；`0` 表示不保留',

  'listeners.*.bind':
    '监听器的地址：`"地址:端口"`、它们的列表，或单独一个端口（本机的所有 IPv4 和 IPv6 地址）。`"localhost:1883"` 是两个环回地址，`"unix:/run/thrum.sock"` 是 `node.data_dir` 之外的 Unix 套接字。端口 0 使用一个空闲端口，启动时打印。监听器必须有地址；只有 `mqtt` 有默认值：所有地址的 1883 端口。',
  'listeners.*.transport':
    'MQTT 的传输方式：`"tcp"`（普通字节流，也可用于 Unix 套接字）、`"websocket"`、`"quic"` 或 `"http"`：管理接口及其页面和指标，以及 `path` 上的 MQTT over WebSocket。设置 `tls.cert` 后，除始终加密的 QUIC 外都使用 TLS。',
  'listeners.*.path': 'WebSocket 的路径；除 HTTP 监听器外，其他路径返回 404。',
  'listeners.*.origins':
    '可以通过 WebSocket 连接的网页来源：`"https://example.com"`。不发送来源的客户端（浏览器以外的）也可以连接。',
  'listeners.*.tls_from': '此监听器共用哪个监听器的 TLS（包括证书）。',
  'listeners.*.proxy_protocol':
    '连接以 PROXY 协议头（版本 1 或 2）开始，其中有客户端的地址。没有协议头的连接会被关闭。',
  'listeners.*.proxy_from':
    '受信任的代理所在的网段：`["10.0.0.0/8", "::1"]`；使用 `proxy_protocol` 时必须设置，来自其他地址的连接会被关闭。在 HTTP 监听器上，代理用 `X-Forwarded-For` 指明客户端。',
  'listeners.*.max_connections': '通过此监听器的连接数上限；0 表示没有自己的限制。',
  'listeners.*.connect_rate':
    '通过此监听器的新连接的速率；超出的连接在系统的积压队列中等待。0 表示没有自己的限制。',
  'listeners.*.messages':
    '此监听器的所有客户端的 PUBLISH 报文；超过速率后暂停读取，直到速率允许。更改后的速率对之后连接的客户端生效。0 表示不限制。',
  'listeners.*.bytes': '此监听器的所有客户端的字节数，同 `messages`。0 表示不限制。',
  'listeners.*.mount_point':
    '此监听器的客户端的每个主题的前缀，客户端看不到它：用于隔离租户。`%u` 是用户名，`%c` 是客户端标识。',
  'listeners.*.retain_available':
    '此监听器的客户端发布的消息可以保留。设为 `false` 时，MQTT 5.0 的客户端会得知这一点（Retain Available 为 0），发布带 RETAIN 的消息会被断开（0x9A）；其他客户端的消息按没有 RETAIN 投递。它们仍会收到其他客户端的保留消息。',
  'listeners.*.auth': '认证后端的名称，按询问的顺序。',
  'listeners.*.accept_protocol_versions':
    '客户端在此可以使用的 MQTT 版本：`"3.1"`、`"3.1.1"` 和 `"5.0"`；其他版本被拒绝（0x84，3.x 中为 1）。',
  'listeners.*.anonymous':
    '可以在此匿名连接的客户端：`"loopback"`、`true` 或 `false`，同 `auth.anonymous`；`"inherit"` 使用 `auth.anonymous` 的值。',
  'listeners.*.tls.cert':
    '证书及其到颁发机构的证书链的文件，PEM 格式。设置后启用 TLS。与此表的其他文件一样，在重新加载和文件变化时重新读取（`tls.reload_interval`）。',
  'listeners.*.tls.key': '`cert` 的私钥文件，PEM 格式，没有口令。为空时私钥在 `cert` 的文件中。',
  'listeners.*.tls.chain':
    '中间证书的文件，PEM 格式，位于 `cert`（和 `sni` 的证书）与颁发机构之间：`cert` 的文件中没有而又需要的证书也会发给客户端，使只信任根证书的客户端能够连接。可以包含其他证书。',
  'listeners.*.tls.ca': '受信任的客户端证书颁发机构的文件，PEM 格式。',
  'listeners.*.tls.client_cert':
    '客户端是否发送证书：`"required"`（必须）、`"optional"`（可选）或 `"none"`（不需要）。设置 `ca` 后生效。',
  'listeners.*.tls.crl': '客户端证书吊销列表的文件，PEM 格式。设置后 `ca` 中的每个颁发机构都需要一个。',
  'listeners.*.tls.username':
    '客户端证书的哪一部分作为用户名，代替 CONNECT 中的用户名：`"cn"`、`"dn"`（整个主体）、`"dns"`、`"email"`、`"uri"`（备用名称）或 `"none"`。这样的客户端不需要密码。',
  'listeners.*.tls.min_version': 'TLS 的最低版本：`"1.2"` 或 `"1.3"`。',
  'listeners.*.tls.session_tickets': '向客户端发放票据，使其能以一半的开销恢复 TLS 会话。',
  'listeners.*.tls.sni.*.cert': '证书及其到颁发机构的证书链的文件，PEM 格式。',
  'listeners.*.tls.sni.*.key': '私钥文件，PEM 格式。为空时私钥在 `cert` 的文件中。',
  'tls.reload_interval':
    '检查证书、私钥、颁发机构和吊销列表文件的间隔。有文件变化的监听器会重新读取全部文件，用于之后的连接；如果文件不可用，则保持原来的。0 表示只在 SIGHUP 时读取。｜更新的证书无需操作即可使用',

  'auth.anonymous':
    '可以匿名连接的客户端：`"loopback"`（本机的客户端）、`true`（所有）或 `false`（没有）。`acl` 限制这类客户端的操作。｜开箱即用，且不对其他机器开放',
  'auth.takeover':
    '谁可以接管已有会话的客户端标识，无论其是否在线：`"same_user"`（会话所属的用户；其他用户以 0x85 被拒绝，3.x 中返回码为 2）或 `"any_user"`（结束原用户的会话，丢弃其队列中的消息）。没有用户名的客户端的会话没有所有者。｜用户不能通过使用他人的标识来结束他人的会话',
  'auth.client_id':
    '客户端标识的格式，例如 `"%u-*"`：`%u` 是用户名，`*` 是任意字符；含 `%u` 的格式不限制没有用户名的客户端。其他标识以 0x85 被拒绝（3.x：返回码 2），服务器分配的标识除外。｜任意格式，标识属于第一个使用它的用户',
  'auth.chain':
    '按此顺序询问后端，直到其中一个认识该客户端：`"users"` 和以下各表的名称。｜先 `"users"`，然后是所有的表，按名称排序',
  'auth.users':
    '内置用户库的文件，由 `thrum users` 维护；文件变化时重新读取。｜`node.data_dir` 中的 `users.jsonl`，添加第一个用户时创建；没有数据目录时没有用户库。除非还询问其他后端，否则在此指定的文件必须存在',
  'auth.cache':
    '缓存的正确密码数，0 到 10 000 000，每个约 100 字节：大量客户端重连时，每个只需一次查找，而不是 20 毫秒。密码与匹配的哈希一起缓存（以二者的带密钥哈希），因此更改后的密码不会被误认。｜多于大多数节点的客户端数',
  'auth.cache_ttl': '密码缓存多久；0 表示关闭缓存。｜存储的哈希改变时缓存也会失效',
  'auth.timeout':
    '所有后端合计回答一次登录的时间，100 毫秒到 1 分钟；超时的客户端以 `server unavailable` 被拒绝。｜比后端所需的时间长，比客户端等待的时间短',
  'auth.pending':
    '可以同时等待后端的登录数，1 到 1 000 000；超出的以 `server busy` 被拒绝。｜限制大量登录占用的内存',
  'auth.password_file.*.path':
    'Mosquitto 的密码文件，每行为 `mosquitto_passwd` 写出的 `user:hash`；文件变化时重新读取。',
  'auth.http.*.url':
    '登录请求的地址：`"https://host/path"`。路径和参数中可以有占位符，例如 `${client_id}`，会进行百分号编码。为空时不向此服务询问登录，只询问决定（`authorize_url`）。',
  'auth.http.*.method':
    '`"post"`：值放在请求体中。`"get"`：值作为 URL 的参数，许多服务器会把它们（包括密码）写入日志。',
  'auth.http.*.content_type': 'POST 请求体的格式：`"json"` 或 `"form"`。',
  'auth.http.*.body': '登录请求的值，形式为 `"名称=文本"`，文本中可以有占位符。',
  'auth.http.*.headers':
    '随每个请求发送的头，形式为 `"name: value"`。值不随配置显示，但保存在配置文件中：令牌请放在 `bearer_file` 中。',
  'auth.http.*.bearer_file': '只包含令牌的文件，令牌以 `Authorization: Bearer …` 发送。',
  'auth.http.*.authorize_url':
    '没有规则决定时（见 `acl.order`），询问发布和订阅决定的地址；占位符同 `url`，另有 `${action}`（`publish`、`subscribe`）、`${topic}`、`${qos}`、`${retain}`。为空时不询问。',
  'auth.http.*.authorize_body': '询问决定的请求的值。',
  'auth.http.*.pool': '同时向此服务发出的请求数上限，每个请求使用自己的连接。',
  'auth.http.*.in_flight':
    '同时进行的请求数上限（包括等待的），登录和决定各自计算；超出的请求视为错误，客户端被拒绝（0x89），或决定为拒绝。',
  'auth.http.*.timeout': TIMEOUT,
  'auth.http.*.ca': CA,
  'auth.jwt.*.secret_file':
    '用于签名和验证（HS256、HS384、HS512）的密钥文件；末尾的换行不计入。至少 32 字节。',
  'auth.jwt.*.public_key_file': '公钥的 PEM 文件，`BEGIN PUBLIC KEY`（RSA、ECDSA 或 Ed25519）。',
  'auth.jwt.*.jwks': '密钥集（JWKS）：`https://` 或 `http://` 地址，或文件。',
  'auth.jwt.*.refresh':
    '两次从地址获取密钥集的间隔，至少 10 秒；遇到未知的密钥会立即获取，但每 10 秒最多一次。',
  'auth.jwt.*.timeout': '密钥集地址的应答时限。',
  'auth.jwt.*.ca': '`https://` 密钥集的颁发机构的 PEM 文件；为空时使用系统的颁发机构。',
  'auth.jwt.*.algorithms':
    '接受的算法：`HS256 HS384 HS512 RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 EdDSA`。指定其他算法的令牌一律不接受。为空时：有密钥文件则为 `HS256`，否则为公钥适用的 `RS256`、`ES256` 或 `EdDSA`。',
  'auth.jwt.*.issuer': '`iss` 必须具有的值；其他签发者的令牌交给下一个后端。',
  'auth.jwt.*.audience': '接受的受众：`aud` 必须至少包含其中之一。',
  'auth.jwt.*.leeway': '`exp` 和 `nbf` 允许的时钟误差。',
  'auth.jwt.*.require_expiry': '不接受没有 `exp` 的令牌：永不过期的令牌无法撤销。',
  'auth.jwt.*.from': '客户端把令牌放在哪里：`"password"` 或 `"username"`。',
  'auth.jwt.*.username_claim':
    '含用户名的声明；不接受没有它的令牌。`""` 保留客户端发送的用户名，此时 `verify` 中必须有一项与它（`%u`）比较。',
  'auth.jwt.*.verify.*':
    '必须具有指定值的声明；`%c` 是客户端标识，`%u` 是客户端发送的用户名，`%%` 是百分号。',
  'auth.jwt.*.acl_claim':
    '含规则的声明：按操作（`pub`、`sub`、`all`）分组的主题过滤器列表，或对象（`permission`、`action`、`topic`、`qos`、`retain`）的列表；`""` 表示没有。',
  'auth.jwt.*.roles_claim': '含客户端角色的声明，文本的列表或以空格分隔的一段文本；`""` 表示没有。',
  'auth.jwt.*.groups_claim': '含客户端的组的声明，形式相同；`""` 表示没有。',
  'auth.ldap.*.url': '服务器：`"ldap://host:389"`，使用 TLS 时为 `"ldaps://host:636"`。必须设置。',
  'auth.ldap.*.starttls':
    '在发送任何内容之前把 `ldap://` 连接转为 TLS；不支持的服务器不使用。`ldaps://` 少一次往返。',
  'auth.ldap.*.ca': CA,
  'auth.ldap.*.bind_dn': '查找用户所用的账户。为空时匿名查找。',
  'auth.ldap.*.password_file': '只包含 `bind_dn` 的密码的文件。',
  'auth.ldap.*.base': '查找用户的起点，包括其下的所有条目。必须设置它或 `dn`。',
  'auth.ldap.*.filter': '查找用户的过滤器。占位符只作为值，不会成为过滤器的一部分。',
  'auth.ldap.*.dn':
    '用户条目的名称：`"uid=${username},ou=people,dc=example,dc=org"`，代替 `base` 和 `filter`。',
  'auth.ldap.*.method':
    '`"bind"`：由服务器验证密码。`"compare"`：由 thrum 与 `password_attribute` 比较，`bind_dn` 必须有权读取它。',
  'auth.ldap.*.password_attribute':
    '`"compare"` 使用的密码属性：`{SSHA}`、`{SHA}`、`{SSHA256}`、`{SHA256}`、`{SSHA512}`、`{SHA512}`、`{ARGON2}`、bcrypt 的 `{CRYPT}`，或密码本身。',
  'auth.ldap.*.superuser_attribute': '值为 `TRUE` 时用户可以做任何操作的属性。',
  'auth.ldap.*.publish_attribute': '含用户可以发布的主题过滤器的属性。',
  'auth.ldap.*.subscribe_attribute': '含用户可以订阅的主题过滤器的属性。',
  'auth.ldap.*.pubsub_attribute': '含用户可以发布和订阅的主题过滤器的属性。',
  'auth.ldap.*.member_of':
    '含用户所属各组的条目名称的属性；每个名称的第一部分是组名。为空时不查询；通常为 `"memberOf"`。',
  'auth.ldap.*.group_base': '查找组的起点，包括其下的所有条目。为空时不查找组。',
  'auth.ldap.*.group_member': '组的属性，含成员条目的名称。',
  'auth.ldap.*.group_name': '含组名的属性。',
  'auth.ldap.*.group_roles': '组成员的角色，形式为 `"组=角色"`；一个组可以有多个角色。',
  'auth.ldap.*.refresh': RULES_REFRESH,
  'auth.ldap.*.pool': '用于查找的连接数上限，以及用于验证密码的连接数上限。',
  'auth.ldap.*.in_flight': IN_FLIGHT,
  'auth.ldap.*.timeout': `${TIMEOUT}一次登录最多需要三个请求。`,
  'auth.redis.*.url':
    '服务器：`"redis://user@host:6379/0"`，TLS 用 `"rediss://…"`，Unix 套接字用 `"redis+unix:///path"`。最后的数字是数据库。单个服务器，不支持集群。必须设置。',
  'auth.redis.*.password_file': '只包含密码的文件。为空时密码在 URL 中，或服务器不需要密码。',
  'auth.redis.*.ca': CA,
  'auth.redis.*.command':
    '查找用户的命令：`HMGET`、`HGETALL`、`HGET` 或 `GET`（只有哈希）。字段：`password_hash`（或 `password`）；可选 `salt`、`is_superuser` 和 `roles`。没有这样的键时询问下一个后端。参数在替换占位符之前按空格分开；双引号中的文本可以有空格。',
  'auth.redis.*.rules':
    '查找用户规则的命令：对哈希的 `HGETALL`，字段是主题过滤器，值是 `publish`、`subscribe`、`all`，或 `{"action": "publish", "qos": [1], "retain": false}` 这样的 JSON。因为字段没有顺序，规则只能允许；最多 10 000 条。',
  'auth.redis.*.refresh': RULES_REFRESH,
  'auth.redis.*.in_flight':
    '同时进行的请求数上限，全部使用一个连接；超出的请求视为错误，客户端被拒绝（0x89）。',
  'auth.redis.*.timeout': '一次请求的时限，包括建立连接。',
  'auth.redis.*.hash.algorithm': HASH.algorithm,
  'auth.redis.*.hash.iterations': HASH.iterations,
  'auth.redis.*.hash.salt_position': HASH.salt_position,
  'auth.sql.*.url':
    '数据库：`"postgresql://user@host:5432/database"`、`"mysql://user@host:3306/database"` 或 `"sqlite:///path/to/file"`。PostgreSQL 可用 `?sslmode=verify-full`，MySQL 可用 `?ssl-mode=VERIFY_IDENTITY`；`?host=`（MySQL 为 `?socket=`）中以 `/` 开头的路径是 Unix 套接字。必须设置。',
  'auth.sql.*.password_file': '只包含数据库用户的密码的文件。为空时密码在 URL 中，或数据库不需要密码。',
  'auth.sql.*.ca': CA,
  'auth.sql.*.query':
    '查找用户的查询。列：`password_hash`；可选 `salt`、`is_superuser`、`roles` 和 `username`（数据库中的写法，客户端随后使用该名称）。没有结果行时询问下一个后端。`${username}` 这样的占位符成为查询的参数，不会成为查询的文本。',
  'auth.sql.*.rules_query':
    '查找用户规则的查询。列：`permission`（`allow`、`deny`）、`action`（`publish`、`subscribe`、`all`）、`topic`；可选 `qos` 和 `retain`。按行的顺序，第一个匹配的规则决定；最多 10 000 条。为空时没有规则。',
  'auth.sql.*.refresh': RULES_REFRESH,
  'auth.sql.*.pool': '数据库连接数上限。',
  'auth.sql.*.in_flight': IN_FLIGHT,
  'auth.sql.*.timeout': TIMEOUT,
  'auth.sql.*.hash.algorithm': HASH.algorithm,
  'auth.sql.*.hash.iterations': HASH.iterations,
  'auth.sql.*.hash.salt_position': HASH.salt_position,

  'acl.rules':
    '所有客户端的规则；第一个匹配的规则决定：`"allow all pubsub devices/%c/#"`、`"allow role:ops sub #"`、`"deny all pubsub $SYS/#"`。',
  'acl.file': '更多规则的文件，每行一条，在 `acl.rules` 之后；文件变化时重新读取。｜没有',
  'acl.mosquitto_file': 'Mosquitto 的 `acl_file`，在以上二者之后；文件变化时重新读取。｜没有',
  'acl.order':
    '评估的顺序：`"rules"`（所有客户端的规则）、`"client"`（客户端自己的规则，来自用户库、令牌或数据库）和 `"remote"`（外部服务）。｜对所有客户端的拒绝始终有效',
  'acl.default':
    '没有规则或服务决定时的结果：`"allow"`、`"deny"` 或 `"auto"`：在没有用户、后端和规则时允许，此后拒绝。｜开箱即用，配置之后安全',
  'acl.denied_publish':
    '对被拒绝的发布的处理：`"reject"`（QoS 大于 0 时返回 0x87；MQTT 3 的客户端不会得知）或 `"disconnect"`。｜一个错误的主题不影响其他主题',
  'acl.partial':
    '对部分允许的订阅的处理：`"filter"`（授予，并检查每条消息）或 `"deny"`。｜客户端可以订阅 `#`，只收到自己的主题',
  'acl.check_retained_source':
    '规则或用户改变之后，如果保留消息的发布者不再有权发布，则不把它发给新的订阅者。｜有权时发布的消息保持有效',
  'acl.cache': '为每个客户端缓存的外部服务的决定数，0 到 10 000。｜普通客户端的主题数',
  'acl.cache_ttl': '外部服务的决定缓存多久。｜被撤销的权限最多继续有效这么久',

  'storage.durability':
    '对持久会话的确认所保证的内容：`"fsync"`（断电后数据仍在）、`"os"`（服务器终止后数据仍在，断电则丢失最后几秒）或 `"memory"`（即使有 `node.data_dir` 也不写磁盘）。｜已确认的数据是安全的',
  'storage.max_disk':
    '状态在磁盘上的最大字节数；其中四分之三可用于消息和会话。达到后拒绝新的持久会话、发给它们的消息和保留消息（0x97）。',
  'storage.wills':
    '服务器未经停止而终止（`kill -9`、断电）后仍保留的遗嘱：`"all"`，包括随连接结束的会话的遗嘱；或 `"persistent"`，只有过期间隔大于 0 的会话的遗嘱。｜遗嘱说明客户端已离开，即使服务器先终止。有遗嘱的客户端的 CONNACK 会等待磁盘；没有遗嘱的客户端没有开销',
  'sinks.*.type': '数据输出的类型：`"log"`，每行一个 JSON 对象的文件。',
  'sinks.*.filter': '写出哪些消息：与 SUBSCRIBE 相同的主题过滤器，不能是共享订阅。必须设置。',
  'sinks.*.path':
    '日志文件。服务器以模式 0600 创建并追加写入；如果其他程序把它移走，则打开新文件。必须设置。',
  'sinks.*.durable':
    '有数据目录时，QoS 1 或 2 的消息在发布者得到确认之前已写入磁盘，并保留到写出为止：至少一次，`kill -9` 和断电之后也是如此。QoS 0 的消息，以及没有数据目录或设为 `false` 时的所有消息，只在内存中等待：最多一次。',
  'sinks.*.when_full':
    '队列已满时的处理：`"refuse"`（QoS 1 或 2 的 PUBLISH 以 0x97 被拒绝，不发给任何订阅者；MQTT 3.x 的客户端不经确认即被断开；QoS 0 跳过此输出并计数）、`"hold"`（暂停读取其发布者，直到队列空出一半）或 `"drop"`（消息跳过此输出并计数）。',
  'sinks.*.queue_messages': '队列中的消息数上限。',
  'sinks.*.queue_bytes': '队列中消息的字节数上限。',

  'limits.connections':
    '同时连接的客户端数上限；超出的连接被拒绝并说明原因（0x97）。进程的打开文件数上限也会限制它。｜一台大型机器能够服务的数量',
  'limits.sessions':
    '连接断开后仍保留的会话数上限，包括在线客户端的会话；会再增加一个会话的客户端被拒绝（0x97），已有会话的客户端可以恢复。0 表示全部拒绝。｜同 `connections`：每个几百字节，不含队列',
  'limits.connect_rate':
    '每秒接受的新连接数；未用的额度累积一秒，超出的连接在系统的积压队列中等待。0 表示不限制。｜大量重连不会影响在线的客户端',
  'limits.connect_timeout':
    '从接受连接到 CONNECT 报文的时间。｜慢速无线链路足够，端口扫描器的空闲连接会被关闭',
  'limits.handshake_timeout':
    '从接受连接到 TLS 和 WebSocket 握手以及代理协议头结束的时间；CONNECT 的时间从此之后开始。｜同 `connect_timeout`',
  'limits.tcp_keepalive':
    'TCP 客户端静默这么久之后由系统探测，两分钟内四次；不应答的客户端被断开。这样可以发现没有 MQTT 保活的客户端已经消失。对之后打开的地址生效；0 表示关闭。｜这样的客户端在一刻钟内被断开，每个客户端一次探测没有可测量的开销',
  'limits.handshakes':
    '一个工作线程同时未完成的 TLS 和 WebSocket 握手数；达到后新连接在系统的积压队列中等待。0 表示不限制。｜几秒的加密运算量，攻击者的空闲连接不会很快占满',
  'limits.max_packet': '接受的最大报文，包括报头。｜限制客户端在报文完整之前占用的内存',
  'limits.max_payload':
    '消息的最大载荷。载荷更大的消息不投递：协议版本允许时会告知发布者（0x97），连接保持；遗嘱的载荷过大时 CONNECT 被拒绝。0 表示没有自己的限制。｜由 `max_packet` 限制，超出的客户端被断开',
  'limits.client_id_length': '客户端标识的最大长度，以字节计。｜足以容纳 URN',
  'limits.allow_zero_length_clientid':
    '为不发送标识的客户端分配标识；否则拒绝（0x85）。｜工具不发送标识，需要区分客户端的地方有用户名',
  'limits.topic_length': '主题名或过滤器的最大长度，以字节计。｜远大于合理的名称，远小于 MQTT 的 65 535',
  'limits.topic_levels': '主题名或过滤器的最大层数。｜限制一次匹配的工作量',
  'limits.packet_filters':
    '一个 SUBSCRIBE 或 UNSUBSCRIBE 的过滤器数上限。SUBSCRIBE 中超出的每个过滤器得到 0x97（MQTT 5.0 之前为 0x80）；UNSUBSCRIBE 得到 0x83，MQTT 5.0 之前没有对应的原因码，连接被关闭。｜它们一次加入，用时不到一毫秒，其他客户端要等待这段时间',
  'limits.max_qos': '最高服务质量：0、1 或 2。',
  'limits.session_expiry':
    '客户端断开后会话保留的最长时间，也是 MQTT 3.1 和 3.1.1 中 clean session 为 0 的客户端的时间；`"never"` 表示一直保留到恢复为止。｜可以度过长周末，也会忘记废弃的设备',
  'limits.keep_alive_max':
    '客户端可以要求的最长保活时间；更长的会被替换（MQTT 5.0 的客户端会得知）。0 表示不限制。｜电池供电的设备了解自己的链路',
  'limits.retain_available':
    '客户端发布的消息可以保留。`false` 对所有监听器生效，作用同监听器的 `retain_available`。',
  'limits.retained_messages':
    '客户端可以在节点上保留的消息数上限；节点自己的主题（`$SYS/…`）不计入。超出上限的保留消息在可以告知发布者时整条被拒绝（0x97）：MQTT 5.0 的 QoS 1 和 2。否则消息照常投递，其主题不再有保留消息。0 等同于 `retain_available = false`。｜大型现场的每个设备一条',
  'limits.retained_bytes':
    '客户端的所有保留消息占用的内存，同 `retained_messages`：主题、属性和载荷，每条消息 96 字节，主题树的每一层为其文本加 144 字节。一个单独的 128 层主题计 18 KiB 以上；`topic_levels` 限制层数。启用 `acl.check_retained_source` 时还计入每个发布者的数据，约 200 字节。',
  'limits.retained_payload':
    '可以保留的最大载荷，同 `retained_messages`。｜同 `max_packet`：能发布的消息都能保留',
  'limits.mailbox_messages':
    '等待一个工作线程的消息数；超出后暂停读取向它发布的连接，直到处理完一半。｜可以吸收突发，并留在大型机器的缓存中',
  'limits.mailbox_bytes': '等待一个工作线程的字节数；超出后暂停读取向它发布的连接，直到处理完一半。',
  'limits.output_bytes':
    '等待一个套接字的字节数；超出后消息留在会话的队列中（QoS 1 和 2），或被丢弃并计数（QoS 0）。｜慢速链路的一秒，慢客户端的开销也很小',
  'limits.memory':
    '服务器进程的内存上限：达到 80 % 后，减少读取其消息需要等待接收者的发布者；达到 90 % 后，拒绝发往长队列的消息和连接断开后仍保留的新会话（0x97）；达到上限时，拒绝所有需要等待的消息和会话。直接通过的消息和恢复会话的客户端始终得到服务。0 表示关闭。｜只有管理员了解这台机器。合适的值是其内存的四分之三',
  'limits.client.queue': '离线或过慢的客户端的队列中的消息数。｜每秒一条消息时约三小时',
  'limits.client.queue_bytes':
    '离线或过慢的客户端的队列占用的内存：每条消息的主题、属性、载荷和订阅标识符，另加 200 字节。｜一个客户端不会占满机器',
  'limits.client.queue_policy':
    '队列已满时对新消息的处理：`"reject_new"` 丢弃它，`"drop_oldest"` 丢弃优先级最低的消息中最旧的，`"hold"` 在客户端在线时让 QoS 1 和 2 的发布者等待（否则同 `"reject_new"`）。｜同 Mosquitto：已确认的消息保留，没有客户端接收其消息的发布者会得知（0x97），没有客户端能让其他客户端等待；EMQX 丢弃最旧的',
  'limits.client.queue_hold':
    'QoS 1 或 2 的发布者等待队列空间的最长时间，其间不读取也不应答：策略为 `"hold"` 的客户端的队列；除 `"drop_oldest"` 外的任何策略下，成员都在线且队列都满的共享组。此后如果没有其他客户端接收，则拒绝消息（0x97）。0 表示不等待。｜发布者等待重启的消费者，客户端在此之前（20 秒以上）不会放弃等待确认',
  'limits.client.queue_age':
    '消息在队列中等待的最长时间，以整秒计；更旧的消息被丢弃。0 表示不限制。｜发布者知道消息多久有用，可以为它设置过期时间',
  'limits.client.queue_qos0':
    '为离线的客户端保留 QoS 0 的消息。它们最先为其他消息让位，也不写入存储。｜QoS 0 用于会被下一条消息取代的数据',
  'limits.client.queue_priorities':
    '先于其他主题离开队列的主题，形式为 `"过滤器=优先级"`：255 最先，0 最后，同一优先级中最旧的先离开。第一个匹配主题的过滤器有效；都不匹配的主题优先级为 0。最多 256 项。｜所有消息按到达的顺序离开',
  'limits.client.inflight':
    '已发给客户端而未确认的 QoS 1 和 2 的消息数；客户端自己的接收最大值也会限制它。｜在 100 毫秒的链路上可以保持每秒 10 000 条消息',
  'limits.client.inflight_bytes':
    '已以 QoS 1 和 2 发给客户端而未确认的载荷字节数；超出后下一条消息等待。0 表示不限制。｜`inflight` 限制消息数，`output_bytes` 限制等待慢速链路的内容',
  'limits.client.receive_maximum':
    '在第一条消息得到确认之前客户端可以发送的 QoS 1 和 2 的消息数（接收最大值）。｜同 `inflight`',
  'limits.client.topic_aliases': '每个方向的主题别名数（MQTT 5.0）。｜设备反复使用的主题，几 KiB 内存',
  'limits.client.upgrade_outgoing_qos':
    '以订阅的服务质量投递消息，即使发布时的更低。｜MQTT 规定取二者中较低的',
  'limits.client.subscriptions': '一个会话的订阅数。｜网关足够，失控的循环会被阻止',
  'limits.client.subscription_bytes':
    '一个会话的订阅占用的内存：每个 150 字节加其文本，含通配符的过滤器每层 100 字节，共享组 300 字节。｜可容纳 10 000 个六层的过滤器，一个客户端的通配符使一条消息检查的内容只需几毫秒',
  'limits.client.shared_subscriptions':
    '一个会话的共享订阅数；它们也计入订阅。｜每个都可能收到每条消息的副本，很少有消费者参加更多的组',
  'limits.client.message_identifiers':
    '一条消息中的订阅标识符数。匹配客户端更多重叠订阅的消息会发送多次，每次带不同的标识符。｜没有应用需要这么多，10 000 个会使每条消息增加 40 KiB',
  'limits.client.messages':
    '一个连接可以发送的 PUBLISH 报文。超过速率后暂停读取，直到可以再次发送；不丢弃任何消息。0 表示不限制。｜只有管理员知道预期的速率',
  'limits.client.bytes': '一个连接可以发送的字节数。0 表示不限制。｜同 `messages`',
  'limits.user.connects':
    '连接速率，登录之后计算；超出的连接被拒绝（0x9F）。0 表示不限制。｜许多设备可能共用一个用户',
  'limits.user.messages': `该用户所有客户端的 PUBLISH 报文；${READ_LESS}`,
  'limits.user.bytes': `该用户所有客户端的字节数；${READ_LESS}`,
  'limits.user.sessions':
    '连接断开后仍保留的会话数；会再增加一个的客户端被拒绝（0x97）。会话从设有限制后客户端的第一次连接和服务器启动时开始计入。0 表示不限制。｜许多设备可能共用一个用户',
  'limits.address.connects':
    '连接速率；超出的连接在 TLS 握手之前被关闭。0 表示不限制。｜整个现场或一个负载均衡器可能共用一个地址。客户端直接连接时 `"100/s"` 是合适的值',
  'limits.address.messages': `该地址所有客户端的 PUBLISH 报文；${READ_LESS}`,
  'limits.address.bytes': `该地址所有客户端的字节数；${READ_LESS}`,
  'limits.address.sessions':
    '连接断开后仍保留的会话数，按最后一次连接的地址计算；会再增加一个的客户端被拒绝（0x97）。服务器启动后，会话在其客户端重新连接时计入。0 表示不限制。｜同 `connects`。客户端直接连接时 `10_000` 是合适的值',

  'protection.bans':
    '封禁列表的文件，由 `thrum bans` 写入；变化后一秒内重新读取。文件名只在启动时读取。｜`node.data_dir` 中的 `bans.jsonl`，没有数据目录时没有此文件',
  'protection.flapping.enabled':
    '连接过于频繁的客户端被封禁一段时间。｜链路不好的设备与出故障的设备看起来一样',
  'protection.flapping.connects':
    '一个客户端在时间窗口内的连接数；再多一次即被封禁。客户端指客户端标识加上其用户，没有用户名时加上其地址（IPv6 为 64 位网段）：使用他人标识的客户端只会封禁自己。失败的登录不计入。0 表示不限制。｜同 EMQX',
  'protection.flapping.user_connects':
    '一个用户在时间窗口内的连接数；再多一次该用户即被封禁。0 表示不限制。｜许多设备可能共用一个用户',
  'protection.flapping.address_connects':
    '一个地址在时间窗口内的连接数，包括失败的登录；再多一次该地址即被封禁，IPv6 为其 64 位网段。0 表示不限制。｜许多客户端可能共用一个地址',
  'protection.flapping.window': '计算连接数的时间窗口。｜同 EMQX',
  'protection.flapping.ban': '封禁的时长（0x8A）。封禁保存在内存中。｜同 EMQX',
  'protection.logins.failures':
    '一个地址（IPv6 为其 64 位网段）在时间窗口内的失败登录数，此后必须等待。曾从该地址登录成功的用户单独计算，不受其他用户影响；该用户从那里登录过的每个客户端标识也是如此，因此密码错误的设备或攻击者都不会把同一地址后面的其他客户端挡在外面；环回地址不等待。0 表示不限制。｜每分钟 30 次猜不到合理的密码，少数密码错误的设备也达不到',
  'protection.logins.window': '计算失败登录数的时间窗口。｜设备重试的间隔',
  'protection.logins.wait': '此后拒绝登录（0x9F）的时间。｜使猜测的速度减半，在人放弃之前结束',
  'protection.overload.turn':
    '工作线程的事件循环一轮达到这一时长即为过长：它的所有客户端都在等待。连续 `turns` 轮之后，新连接等待。0 表示关闭。｜远大于繁忙的一轮，客户端也会察觉',
  'protection.overload.turns': '连续过长的轮数。｜一轮过慢不是过载',
  'protection.overload.publish_turn':
    '对发布者同样：连续 `turns` 轮达到这一时长之后，减少读取发布者。0 表示关闭。｜它会降低吞吐量，此时新连接已等待了一段时间',
  'protection.overload.calm': '在这段时间内每一轮都不到限值的一半时，过载结束。｜过载不会反复开始和结束',

  'shared.strategy':
    '由组的哪个成员接收消息：`"round_robin"`（轮流）、`"random"`（随机）、`"sticky"`（同一个，直到它离开）、`"hash_client_id"`（同一发布者的消息给同一个）、`"hash_topic"`（同一主题的消息给同一个）或 `"local"`（如有则选本节点的成员）。｜均匀分配工作',

  'management.session_idle':
    '管理员的会话在这段时间没有请求后结束，1 分钟到 1 天。｜NIST SP 800-63B-4 建议的最长时间',
  'management.session_life':
    '会话在这段时间后结束，无论有多少请求，1 分钟到 30 天。｜NIST SP 800-63B-4 建议的最长时间',
  'management.audit': '数据目录中审计日志的大小，至少 2 MiB；最旧的条目让位。｜约 150 000 次更改',
  'management.benchmarks.enabled':
    '是否可以开始性能测试。｜需要权限 `benchmarks:write`，占用不超过这里的限制',
  'management.benchmarks.clients':
    '一次测试的客户端数上限。｜每个占用两个进程各一个打开文件，默认限制的服务器还能容纳更多',
  'management.benchmarks.cores':
    '一次测试的核心数；不超过服务器可用核心的一半，至少一个。｜一半，另一半留给服务器',
  'management.benchmarks.memory': '测试进程占用更多内存时被终止，至少 32 MiB。｜约 500 000 个客户端',
  'management.benchmarks.duration': '最长的测试，所有阶段合计，1 秒到 7 天。｜被遗忘的测试在有人还记得时结束',
  'management.benchmarks.nice':
    '服务器线程比测试线程优先多少，0 到 19。｜双方都要使用的核心，服务器得到四分之三',
  'management.benchmarks.other_targets': '测试是否可以针对其他服务器。｜此程序可以测试任何 MQTT 服务器',
  'management.oidc.issuer':
    '身份提供方的地址，与其令牌中的（`iss`）相同：`https://`，本机可用 `http://`。｜没有身份提供方',
  'management.oidc.client_id': '此服务器在身份提供方的名称。',
  'management.oidc.client_secret_file': '含其密钥的文件；末尾的换行不计入。｜没有密钥，只由 PKCE 保护授权码',
  'management.oidc.redirect_uri': '身份提供方把浏览器送回的地址，必须以 `/api/v1/login/oidc/callback` 结尾。',
  'management.oidc.scopes': '除 `openid` 外请求的范围。',
  'management.oidc.name_claim': '含审计日志所显示名称的声明。',
  'management.oidc.groups_claim': '含组的声明，文本的列表或一段文本。',
  'management.oidc.administrators': '成员具有 `administrator` 角色的组。',
  'management.oidc.operators': '成员具有 `operator` 角色的组。',
  'management.oidc.viewers': '成员具有 `viewer` 角色的组；有多个角色时取最高的，没有任何角色的人不能登录。',
  'management.oidc.ca': '身份提供方的颁发机构的 PEM 文件；为空时使用系统的颁发机构。',

  'sys.interval': '两次更新 `$SYS/broker/…` 主题的间隔；0 表示关闭。｜同 Mosquitto',

  'log.level':
    '日志级别：`error`、`warn`、`info`、`debug` 或 `trace`，也可按部分设置：`"info,thrum_broker=debug"`。变量 `RUST_LOG` 也可以设置。｜状态的改变，没有逐条消息的内容',
  'log.format': '一行的格式：`"text"` 供人阅读，`"json"` 供程序读取。',
  'log.clients':
    '每秒关于客户端的 `info` 级别日志的行数：连接时一行，断开时一行并附原因。省略的行会计数。0 表示没有。｜正常运行时足够每个客户端使用，大量重连也不会写满磁盘',

  'alarms.queues': '队列占用五分之四的客户端数；0 表示没有告警。每分钟计算一次。｜下一步就是丢弃消息',
  'alarms.drops': '每分钟丢弃的消息数；0 表示没有告警。｜每条丢失的消息都有原因',
  'alarms.refusals':
    '每分钟因队列、内存、磁盘、数据出口或保留消息已满而被拒绝（QoS 0 时被丢弃）的消息数；0 表示没有告警。发布者无权发布或过大的消息不计。｜被拒绝的发布者会等待，或丢失消息',
  'alarms.memory': '`limits.memory` 的使用百分比；0 表示没有告警。｜从此减少读取发布者',
  'alarms.disk': '`storage.max_disk` 的使用百分比；0 表示没有告警。｜达到四分之三后拒绝新的消息和会话',
  'alarms.disk_free':
    '`node.data_dir` 所在磁盘的剩余空间低于此值时告警；0 表示没有。｜日志及其清理需要一些空间',
  'alarms.connections':
    '`limits.connections` 或监听器的 `max_connections` 的使用百分比；0 表示没有告警。｜有时间在拒绝客户端之前提高上限',
  'alarms.open_files': '进程打开文件数的使用百分比；0 表示没有告警。',
  'alarms.certificate':
    '距证书到期的时间，或其有效期的三分之一（取较短的）；0 表示没有告警。｜有时间更新证书',
  'alarms.cpu': '服务器十秒内占用这台机器所有核心的百分比；0 表示没有告警。｜留给突发的余量很少',

  'telemetry.endpoint':
    '收集器的地址：`"http://host:4318"`，`protocol = "grpc"` 时为 `"http://host:4317"`；TLS 用 `https://`。使用 HTTP 时会加上 `/v1/metrics`、`/v1/logs` 和 `/v1/traces`。｜不导出',
  'telemetry.protocol': '与收集器通信的方式：`"http/protobuf"` 或 `"grpc"`。｜可以通过任何代理',
  'telemetry.headers_file':
    '每个请求的头所在的文件，每行一个 `name: value`，用于收集器的令牌。应当只有运行服务器的用户能够读取；重新加载时重新读取。｜没有',
  'telemetry.ca': '用来验证收集器证书的证书文件（PEM）。｜系统信任的证书',
  'telemetry.timeout': '一次请求的时限。｜同 OpenTelemetry',
  'telemetry.interval': '两次导出指标的间隔。｜同 OpenTelemetry',
  'telemetry.resource':
    '此服务器的属性，形式为 `"名称=值"`，另有 `service.name`（`thrum`）、`service.instance.id`（`node.name`）和 `service.version`，可以替换它们。',
  'telemetry.metrics': '导出 `/metrics` 的指标。',
  'telemetry.logs': '导出日志。',
  'telemetry.traces.every':
    '匹配 `filters` 和 `clients` 的消息中，每多少条跟踪一条；1 表示全部。被跟踪的消息最多增加 71 字节，对最大报文长度更小的接收者会被丢弃。｜不跟踪',
  'telemetry.traces.filters': '主题过滤器，主题必须匹配其中之一。｜所有主题',
  'telemetry.traces.clients': '发布者的客户端标识，`*` 为任意字符，必须匹配其中之一。｜所有客户端',
  'telemetry.traces.follow_parent':
    '带用户属性 `traceparent` 的消息当且仅当其发布者跟踪它时才跟踪。设为 `false` 时与其他消息一样选择。｜客户端不能决定服务器导出什么',
};
