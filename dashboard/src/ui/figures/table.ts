// How to get each figure elsewhere. Its text is in `en.ts` and `zh.ts`; a test compares the names of metrics, routes and
// commands with the guides and the description of the interface.

/** `{id}` stands for the client, topic, group or run that is shown. */
interface Source {
  /** The question for Prometheus; a figure of a single client, topic or run has none: no label has a name of a client. */
  promql?: string;
  /** The route of the interface. */
  path: string;
  query?: Readonly<Record<string, string>>;
  /** The command, without `thrum`. */
  command: string;
}

export const FIGURES = {
  clients: {
    promql: 'thrum_clients_connected',
    path: '/history',
    query: { figure: 'clients' },
    command: 'clients ls --connected',
  },
  away: {
    promql: 'thrum_sessions - thrum_clients_connected',
    path: '/clients/facets',
    command: 'clients ls --away',
  },
  connects: {
    promql: 'rate(thrum_clients_accepted_total[1m])',
    path: '/history',
    query: { figure: 'connects' },
    command: 'status',
  },
  disconnects: {
    promql: 'rate(thrum_connections_closed_total[1m])',
    path: '/history',
    query: { figure: 'disconnects' },
    command: 'status',
  },
  refused: {
    promql: 'rate(thrum_clients_refused_total[1m])',
    path: '/history',
    query: { figure: 'refused' },
    command: 'status',
  },
  waiting: {
    path: '/clients/facets',
    command: 'clients ls --sort queued_messages --reverse',
  },
  messages_in: {
    promql: 'rate(thrum_messages_received_total[1m])',
    path: '/history',
    query: { figure: 'messages_in' },
    command: 'status',
  },
  messages_out: {
    promql: 'rate(thrum_messages_sent_total[1m])',
    path: '/history',
    query: { figure: 'messages_out' },
    command: 'status',
  },
  flow: {
    promql: 'sum(rate(thrum_messages_received_total[1m])) + sum(rate(thrum_messages_sent_total[1m]))',
    path: '/history',
    query: { figure: 'messages_in,messages_out,drops' },
    command: 'status',
  },
  latency: {
    promql: 'histogram_quantile(0.99, sum by (le) (rate(thrum_message_seconds_bucket[1m])))',
    path: '/history',
    query: { figure: 'delivery_p50_ms,delivery_p99_ms' },
    command: 'why slow',
  },
  deliveries: {
    promql: 'sum by (le) (rate(thrum_message_seconds_bucket[1m]))',
    path: '/history',
    query: { figure: 'deliveries_to_1ms,deliveries_to_10ms,deliveries_longer' },
    command: 'why slow',
  },
  drops: {
    promql: 'sum by (reason) (rate(thrum_messages_dropped_total[1m]))',
    path: '/drops',
    command: 'why drops',
  },
  drops_recent: {
    promql: 'sum by (reason) (increase(thrum_messages_dropped_total[15m]))',
    path: '/history',
    query: { figure: 'drops' },
    command: 'why drops',
  },
  drops_known: {
    promql: 'sum by (reason) (thrum_messages_dropped_total)',
    path: '/drops',
    command: 'drops ls',
  },
  publishes_refused: {
    promql: 'sum by (reason) (rate(thrum_publishes_refused_total[1m]))',
    path: '/refused-publishes',
    command: 'alarms ls',
  },
  cpu: {
    promql: 'rate(process_cpu_seconds_total[1m])',
    path: '/history',
    query: { figure: 'cpu_percent' },
    command: 'status',
  },
  memory: {
    promql: 'process_resident_memory_bytes',
    path: '/history',
    query: { figure: 'memory_bytes' },
    command: 'status',
  },
  sessions: {
    promql: 'thrum_sessions',
    path: '/history',
    query: { figure: 'sessions' },
    command: 'clients ls',
  },
  subscriptions: {
    promql: 'thrum_subscriptions',
    path: '/history',
    query: { figure: 'subscriptions' },
    command: 'subs ls',
  },
  retained: {
    promql: 'thrum_retained_messages',
    path: '/history',
    query: { figure: 'retained' },
    command: 'retained ls',
  },
  retained_bytes: {
    promql: 'thrum_retained_bytes',
    path: '/status',
    command: 'status',
  },
  storage: {
    promql: 'thrum_storage_health',
    path: '/storage',
    command: 'status',
  },
  storage_used: {
    promql: 'thrum_storage_used_bytes',
    path: '/storage',
    command: 'api get /storage',
  },
  storage_waiting: {
    promql: 'thrum_storage_waiting_bytes',
    path: '/storage',
    command: 'api get /storage',
  },
  storage_commit: {
    promql: 'rate(thrum_storage_commit_seconds_sum[5m]) / rate(thrum_storage_commit_seconds_count[5m])',
    path: '/storage',
    command: 'api get /storage',
  },
  files: {
    promql: 'process_open_fds',
    path: '/node',
    command: 'api get /node',
  },
  uptime: {
    promql: 'time() - process_start_time_seconds',
    path: '/status',
    command: 'status',
  },
  version: {
    promql: 'thrum_build_info',
    path: '/status',
    command: 'status',
  },
  topics_rate: {
    promql: 'rate(thrum_messages_received_total[1m])',
    path: '/topics',
    command: 'topics watch',
  },
  topics_bytes: {
    promql: 'rate(thrum_payload_received_bytes_total[1m])',
    path: '/topics',
    command: 'topics watch',
  },
  topics_messages: {
    path: '/topics',
    command: 'topics ls',
  },
  topics_top: {
    path: '/topics',
    command: 'topics ls',
  },
  topics_others: {
    promql: 'thrum_topic_messages_untold_total',
    path: '/topics',
    command: 'topics ls',
  },
  topic_messages: {
    path: '/topics/topic',
    query: { topic: '{id}' },
    command: 'topics get {id}',
  },
  topic_bytes: {
    path: '/topics/topic',
    query: { topic: '{id}' },
    command: 'topics get {id}',
  },
  topic_rate: {
    path: '/topics/topic',
    query: { topic: '{id}' },
    command: 'topics get {id}',
  },
  topic_subscribers: {
    path: '/topics/topic',
    query: { topic: '{id}' },
    command: 'topics get {id}',
  },
  groups_waiting: {
    path: '/groups',
    command: 'groups ls --sort lag --reverse',
  },
  groups_members: {
    promql: 'thrum_shared_subscriptions',
    path: '/groups',
    command: 'groups ls',
  },
  groups_inflight: {
    path: '/groups',
    command: 'groups ls',
  },
  group_lag: {
    path: '/groups',
    query: { group: '{id}' },
    command: 'groups ls',
  },
  listener_connections: {
    promql: 'sum by (listener) (thrum_listener_connections)',
    path: '/listeners',
    command: 'listeners ls',
  },
  listener_refused: {
    promql: 'rate(thrum_limit_reached_total[5m])',
    path: '/listeners',
    command: 'listeners ls',
  },
  client_in: {
    path: '/clients/{id}',
    query: { sample_ms: '1000' },
    command: 'clients get {id}',
  },
  client_messages: {
    path: '/clients/{id}',
    command: 'clients get {id}',
  },
  client_inflight: {
    path: '/clients/{id}',
    command: 'clients get {id}',
  },
  client_queue: {
    path: '/clients/{id}/queue',
    command: 'clients get {id}',
  },
  client_dropped: {
    path: '/drops',
    query: { client: '{id}' },
    command: 'drops ls --client {id}',
  },
  client_refused: {
    path: '/refused-publishes',
    query: { client: '{id}' },
    command: 'clients get {id}',
  },
  client_rtt: {
    path: '/clients/{id}',
    command: 'clients get {id}',
  },
  client_line: {
    path: '/clients/{id}',
    command: 'clients get {id}',
  },
  client_silent: {
    path: '/clients/{id}',
    command: 'clients get {id}',
  },
  client_subscriptions: {
    path: '/clients/{id}/subscriptions',
    command: 'clients get {id}',
  },
  client_oldest: {
    path: '/clients/{id}/queue',
    command: 'clients get {id}',
  },
  client_kept: {
    path: '/clients/{id}',
    command: 'clients get {id}',
  },
  bench_rate: {
    path: '/benchmarks/runs/{id}/samples',
    command: 'api get /benchmarks/runs/{id}',
  },
  bench_p50: {
    path: '/benchmarks/runs/{id}/samples',
    command: 'api get /benchmarks/runs/{id}',
  },
  bench_p99: {
    path: '/benchmarks/runs/{id}/samples',
    command: 'api get /benchmarks/runs/{id}',
  },
  bench_clients: {
    path: '/benchmarks/runs/{id}/samples',
    command: 'api get /benchmarks/runs/{id}',
  },
  bench_errors: {
    path: '/benchmarks/runs/{id}/samples',
    command: 'api get /benchmarks/runs/{id}',
  },
  bench_heat: {
    path: '/benchmarks/runs/{id}/samples',
    command: 'api get /benchmarks/runs/{id}',
  },
  bench_broker: {
    path: '/benchmarks/runs/{id}/samples',
    command: 'api get /benchmarks/runs/{id}',
  },
  sink_written: {
    promql: 'rate(thrum_sink_messages_written_total{sink="{id}"}[1m])',
    path: '/config',
    query: { prefix: 'sinks.{id}.' },
    command: 'api get /config',
  },
  sink_waiting: {
    promql: 'thrum_sink_messages_waiting{sink="{id}"}',
    path: '/config',
    query: { prefix: 'sinks.{id}.' },
    command: 'api get /config',
  },
} as const satisfies Readonly<Record<string, Source>>;

/** The name of a figure. */
export type Figure = keyof typeof FIGURES;

/** What the table says of a figure. */
export function sourceOf(figure: Figure): Source {
  return FIGURES[figure];
}
