export default {
  clients: 'Clients that are connected now. Those that are away and have a session are not counted.',
  away: 'Sessions without a connection. The broker keeps their subscriptions, and messages for them wait.',
  connects: 'CONNECT packets that were accepted, each second.',
  disconnects: 'Connections of clients that ended, each second, for all reasons.',
  refused: 'CONNECT packets that were refused, each second: a wrong login, a ban, a limit.',
  waiting: 'Messages in the queues of all clients, those that are away among them.',
  messages_in: 'PUBLISH packets from clients, each second.',
  messages_out: 'PUBLISH packets to clients, each second.',
  flow: 'Messages from clients, to clients, and those that did not reach a subscriber, each second.',
  latency:
    'Of 100 measured deliveries, 50 and 99 take at most this long in the broker, from the read of the PUBLISH to the last byte written to the receiver. One of several messages is measured.',
  deliveries:
    'Measured deliveries of each second by the time that they took in the broker. A darker field has more of them.',
  drops: 'Messages that did not reach a subscriber, each second, for all reasons together.',
  drops_recent:
    'Messages that did not reach a subscriber in the time that the charts show, at most 15 minutes.',
  drops_known:
    'Dropped messages since the broker started that are known by reason, client and topic. Messages with QoS 0 for clients that are away are not among them.',
  publishes_refused:
    'Messages that were refused to their publishers, or discarded with QoS 0, since the broker started.',
  cpu: 'CPU time that the broker takes, of one core: 200 % are two cores.',
  memory:
    'Resident memory of the process. At the limit of `limits.memory` the broker refuses work, step by step.',
  sessions: 'Sessions, with and without a connection.',
  subscriptions: 'Subscriptions of all sessions, shared ones included.',
  retained:
    'Retained messages of clients, without those of the broker below $SYS. New subscribers get them at once.',
  retained_bytes: 'Memory that the retained messages take, topics and properties included.',
  storage:
    'Whether sessions and messages can be kept on the disk. Full or failing means that what must be stored is refused.',
  storage_used:
    'Bytes of the files of the log, of the limit `storage.max_disk`. What is no longer needed among them is cleaned when room is needed.',
  storage_waiting:
    'Bytes that wait for the storage thread. If they stay, the disk is slower than the messages.',
  storage_commit: 'Mean time of a commit since the start: one write and one sync for all changes that wait.',
  files: 'Open files of the process, sockets among them, and their limit. Each client takes one.',
  uptime: 'Time since the broker started. Counters begin with it.',
  version: 'Version of the program that runs.',
  topics_rate:
    'Messages in all topics in a second, of the last seconds. The broker counts them while somebody looks.',
  topics_bytes: 'Bytes of their payloads in a second, of the last seconds.',
  topics_messages: 'Messages in all topics since the broker began to count, and the bytes of their payloads.',
  topics_top: 'Topics and levels at the top of the tree that had a message since the broker began to count.',
  topics_others:
    'Messages whose topic found no room in the tree, which is bounded. The sums of the levels have them.',
  topic_messages:
    'Messages with this topic, and those below it, since the broker began to count. For Prometheus, `metrics.topics` counts topics of chosen filters.',
  topic_bytes: 'Bytes of the payloads of these messages.',
  topic_rate: 'Messages with this topic, and those below it, in a second, of the last seconds.',
  topic_subscribers:
    'Sessions whose filters match this topic, and shared groups of which one member gets each message.',
  groups_waiting:
    'Messages in the queues of the members. They contain those of other subscriptions of a member.',
  groups_members:
    'Members of shared groups, and how many of them are connected. Away members get no message of the group.',
  groups_inflight: 'Messages that members were sent and have not acknowledged.',
  group_lag: 'Messages that wait for the members of this group, and those that they have not acknowledged.',
  listener_connections: 'Open connections through all listeners, those in their handshake among them.',
  listener_refused:
    'Connections that were refused because a listener had `max_connections`, since the broker started.',
  client_in:
    'PUBLISH packets from this client and to it, each second. Labels of Prometheus have no client identifiers.',
  client_messages: 'PUBLISH packets from this client and to it, on this connection or the last one.',
  client_inflight:
    'Messages that were sent and that it has not acknowledged (inflight), of the most that it and the broker allow. At that number, more messages wait.',
  client_queue:
    'Messages that wait in its queue, of the limit of the queue. At the limit, messages for it are dropped.',
  client_dropped: 'Messages that it did not get, by reason, since its session began or the broker started.',
  client_refused:
    'Messages from it that were refused, by reason, since its session began or the broker started.',
  client_rtt:
    'Time to the client and back, as the TCP stack of the broker measures it. A high one is the network, not the broker.',
  client_line: 'TCP segments that had to be sent again. Many of them mean a bad line.',
  client_silent:
    'Time since its last packet. After one and a half times its keep alive, the broker ends the connection.',
  client_subscriptions: 'Filters that it is subscribed to.',
  client_oldest: 'Age of the oldest message in its queue.',
  client_kept: 'How long the broker keeps its session after its connection has ended.',
  bench_rate:
    'Messages that the generator sent each second, beside those that it should have sent (offered). A broker that is too slow holds publishers back, and the two differ.',
  bench_p50:
    'Half of the messages took at most this long, from the time at which they should have been sent to their arrival. A late send counts against the broker.',
  bench_p99:
    '99 of 100 messages took at most this long, from the time at which they should have been sent to their arrival.',
  bench_clients: 'Clients of the generator that are connected.',
  bench_errors:
    'Errors of the clients of the generator, for all reasons: refused connections, time-outs, lost connections.',
  bench_heat: 'Messages of each second by the time that they took. A darker field has more of them.',
  bench_broker:
    'CPU time and resident memory of the broker that is measured, and CPU time of the generator. They share the machine if both run on it.',
  sink_written: 'Messages that the sink has written, a second.',
  sink_waiting: 'Messages in the queue of the sink, those that are being written among them.',
} as const;
