export default {
  figures: 'Figures',
  unit: '{n|message|messages}',
  'fact.now': 'Now',
  'fact.recent': 'In the last {span}',
  'fact.known': 'Known by client and topic',
  'ret.memory': 'Memory',
  'grp.connected': 'Connected',
  'grp.of': 'of {all}',
  'grp.lag': 'Lag',
  views: 'Kind of messages',
  drops: 'Drops',
  retained: 'Retained',
  groups: 'Shared groups',
  'say.none': '**Nothing was dropped** since the broker started.',
  'say.quiet':
    '**Nothing is dropped now.** {n} {n|message was|messages were} dropped since the broker started.',
  'say.now': '**{n} {n|message is|messages are} dropped each second;** {share} because: {reason}.',
  'say.asking': 'Asking the broker…',
  more: '{n} in the last {span}. Most are missed by {client}.',
  why: 'Why?',
  chart: 'Dropped',
  'chart.note': 'msg/s',
  'chart.none': 'Nothing was dropped in this time',
  'by.reason': 'By reason',
  'by.client': 'By client',
  'by.topic': 'By topic',
  'unknown.topic': 'not known',
  'rank.of': '{n} of {all}',
  'rank.all': 'Show all',
  'rank.first': 'Show the first',
  'matrix.clients': '{n} other {n|client|clients}',
  'matrix.of': '{n} of {all} {all|client|clients}',
  'matrix.first': 'These are the {n} most frequent of {all} combinations. The file has all of them.',
  matrix: 'Client × topic',
  'matrix.since': 'messages since the broker started',
  'matrix.client': 'Client',
  'matrix.sum': 'Sum',
  'matrix.others': 'others',
  'matrix.left': '{n} {n|combination|combinations} had no room and {n|is|are} not in this table.',
  'matrix.offline': 'Messages with QoS 0 for clients that are away are counted in the chart only.',
  'drops.empty': 'No drop is known by client and topic.',
  cure: 'What to change',
  'cure.away':
    '**Bring {clients} back.** {n|It is|They are} away, so nothing leaves {n|its queue|their queues}: {n|it is|they are} full.',
  'cure.away.end':
    '**Or end {n|its session|their sessions}** if {n|it does|they do} not come back: its page has “End session…”. What waits is lost.',
  'cure.away.expiry':
    '**Or keep less.** A shorter session expiry ends the sessions of clients that stay away (`limits.session_expiry`), and a message expiry or `limits.client.queue_age` takes old messages out of the queue.',
  'cure.queue_full':
    '**Let them have more on their way.** The client asks for a larger receive maximum, up to `limits.client.inflight`, or acknowledges sooner.',
  'cure.queue_full.2':
    '**Or share the work.** Several members of a group `$share/GROUP/FILTER` have a queue each.',
  'cure.queue_full.3': '**Or hold more.** Raise `limits.client.queue`, if the client catches up later.',
  'cure.other': '**Measure for ten seconds.** The page “Why is it slow?” names the cause and its cure.',
  refused: 'Refused to publishers',
  'refused.none': 'No message was refused to its publisher since the broker started.',
  'refused.what':
    'A refused message reaches nobody. It is not dropped: a publisher that is told still has it, and may send it again. If the queues of its receivers were full, it is counted above as well.',
  'refused.told': '**Refused: {n}, and the publishers know it.**',
  'refused.some':
    '**Refused: {n}.** The publishers do not know of {untold}: QoS 0 has no answer, and MQTT 3.1.1 has no code for it.',
  'refused.now': '{n} {n|is|are} refused each second now.',
  'refused.reason': 'Refused by reason',
  'refused.publisher': 'Refused by publisher',
  'refused.first':
    'The sums by publisher are those of the {n} most frequent of {all} combinations. The file has all of them.',
  'refused.first.of': 'The sums of {id} are those of the {n} most frequent of {all} combinations.',
  'refused.open': 'Open {id}',
  'refused.cure.not_allowed':
    '**The rules deny it.** “May it publish to…?” on the page of the client names the rule that decides.',
  'refused.cure.reserved_topic':
    '**The topic belongs to the broker.** Let the client publish elsewhere than below `$SYS`, `$share`, `$queue` and `$events`.',
  'refused.cure.topic_too_long':
    '**The topic is too long.** With the mount point of the listener it has more than 65,535 bytes.',
  'refused.cure.payload_too_large':
    '**The payload is too large.** Send less in one message, or raise `limits.max_payload`.',
  'refused.cure.queues_full':
    '**No receiver has room.** Let the receivers take more (they are above, among those that miss messages), or let publishers wait: `limits.client.queue_policy` is `hold`.',
  'refused.cure.memory_short':
    '**Memory is short.** End sessions with long queues, or raise `limits.memory` if the machine has more.',
  'refused.cure.retained_limit':
    '**No more is retained.** Delete retained messages that nobody needs, or raise `limits.retained_messages`, `limits.retained_bytes` or `limits.retained_payload`.',
  'refused.cure.disk_full':
    '**The storage is full.** Make room on the disk of `node.data_dir`, end old sessions, or raise `storage.max_disk` and restart.',
  'refused.cure.sink_full':
    '**A sink is full and refuses.** Its target does not take what it sends: the page Data says more. With `when_full = "drop"` publishers go on, and the sink misses messages.',
  'ret.filter': 'MQTT filter of topics',
  'ret.hint': 'MQTT filter, such as site/+/line3/#',
  'ret.topic': 'Topic',
  'ret.size': 'Size',
  'ret.qos': 'QoS',
  'ret.age': 'Age',
  'ret.expires': 'Expires in',
  'ret.never': 'never',
  'ret.say':
    '**{n} {n|message is|messages are} retained,** {bytes} in memory. New subscribers get them at once.',
  'ret.none': 'No message is retained for {filter}.',
  'ret.none.text': 'A message is retained if it is published with the RETAIN flag.',
  'ret.export': 'JSONL',
  'ret.delete': 'Delete all that match…',
  'grp.say':
    '**{n} {n|group shares|groups share} the work.** {waiting} {waiting|message waits|messages wait} in the queues of their members.',
  'grp.say.none': '**No group shares work.** Clients form one by subscribing to `$share/GROUP/FILTER`.',
  'grp.members': '{n} of {all} connected',
  'grp.member': 'Member',
  'grp.state': 'State',
  'grp.queue': 'Waiting',
  'grp.inflight': 'On their way',
  'grp.oldest': 'Oldest',
  'grp.idle': 'Silent for',
  'grp.note': 'The lag of a member contains that of its other subscriptions.',
} as const;
