/** The figures of Home as questions for Prometheus; a test compares the names with the guide. */
export const PROMQL = {
  clients: 'thrum_clients_connected',
  incoming: 'rate(thrum_messages_received_total[1m])',
  outgoing: 'rate(thrum_messages_sent_total[1m])',
  latency: 'histogram_quantile(0.99, sum by (le) (rate(thrum_message_seconds_bucket[1m])))',
  drops: 'sum by (reason) (rate(thrum_messages_dropped_total[1m]))',
} as const;
