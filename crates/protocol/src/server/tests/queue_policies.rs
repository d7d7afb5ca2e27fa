//! Policies of a full queue, the age limit of its messages, and queued `QoS` 0.

use proptest::prelude::*;

use super::*;

const FULL: Delivered = Delivered::Dropped(DropReason::QueueFull);

fn limits() -> Limits {
    Limits {
        queue: QueueLimits {
            messages_max: 3,
            ..QueueLimits::default()
        },
        ..Limits::default()
    }
}

fn away(limits: Limits) -> Peer {
    let (mut peer, _) = Peer::with(limits, &persistent(Version::V5));
    peer.lose();
    peer
}

/// Payloads that a reconnecting client receives, without packet identifiers.
fn payloads(peer: &mut Peer) -> Vec<String> {
    let lines = peer.reconnect(&windowed(100));
    let payload = |line: &String| line.rsplit('=').next().unwrap_or_default().to_string();
    lines.iter().map(payload).collect()
}

#[test]
fn drop_oldest_drops_the_oldest_message() {
    let mut peer = away(Limits {
        queue: QueueLimits {
            policy: QueuePolicy::DropOldest,
            ..limits().queue
        },
        ..limits()
    });
    for payload in ["a", "b", "c", "d", "e"] {
        peer.queued(QOS1, payload);
    }
    assert_eq!(peer.dropped(), [(DropReason::QueueDropped, 2)]);
    assert_eq!(payloads(&mut peer), ["c", "d", "e"]);
}

#[test]
fn as_many_messages_are_dropped_as_the_bytes_require() {
    let mut peer = away(Limits {
        queue: QueueLimits {
            policy: QueuePolicy::DropOldest,
            bytes_max: queue_bytes_max(3, 30),
            messages_max: 100,
            ..QueueLimits::default()
        },
        ..Limits::default()
    });
    for payload in ["aaaaaaaa", "bbbbbbbb", "cccccccc"] {
        peer.queued(QOS2, payload);
    }
    peer.queued(QOS1, "dddddddddddd");
    assert_eq!(peer.dropped(), [(DropReason::QueueDropped, 2)]);
    // A message that never fits does not displace any.
    assert_eq!(peer.deliver(QOS1, &"x".repeat(3 * ENTRY_BYTES)).0, FULL);
    assert!(peer.dropped().is_empty());
    assert_eq!(payloads(&mut peer), ["cccccccc", "dddddddddddd"]);
}

#[test]
fn a_full_queue_takes_acknowledged_messages_unless_its_policy_drops_them() {
    for (policy, outcome) in [
        (QueuePolicy::RejectNew, Delivered::Queued),
        (QueuePolicy::Hold, Delivered::Queued),
        (QueuePolicy::DropOldest, FULL),
    ] {
        let mut peer = away(Limits {
            queue: QueueLimits {
                policy,
                bytes_max: queue_bytes_max(3, 30),
                qos0: true,
                ..QueueLimits::default()
            },
            ..Limits::default()
        });
        let acknowledged = |qos| DeliveryOptions {
            is_acknowledged: true,
            ..options(qos)
        };
        // It does not fit into the empty queue, so that no other message can make room for it.
        let large = "x".repeat(3 * ENTRY_BYTES);
        let large = publication("t", &large);
        assert_eq!(peer.deliver_publication(&large, &options(QOS1)).0, FULL);
        assert_eq!(
            peer.deliver_publication(&large, &acknowledged(QOS0)).0,
            FULL
        );
        let delivered = peer.deliver_publication(&large, &acknowledged(QOS1)).0;
        assert_eq!(delivered, outcome, "{policy:?}");
        let queued = usize::from(outcome == Delivered::Queued);
        assert_eq!(payloads(&mut peer).len(), queued);
    }
}

#[test]
fn a_dropped_message_of_a_durable_session_is_removed() {
    let mut peer = away(Limits {
        queue: QueueLimits {
            policy: QueuePolicy::DropOldest,
            messages_max: 1,
            ..QueueLimits::default()
        },
        ..Limits::default()
    });
    peer.session.journal_mut().set_on(true);
    peer.queued(QOS1, "a");
    peer.queued(QOS1, "b");
    assert_eq!(
        peer.steps(),
        ["queued 1 q1 a", "removed 1", "queued 2 q1 b"]
    );
}

#[test]
fn qos0_is_queued_for_a_disconnected_client_if_configured() {
    for version in VERSIONS {
        let limits = Limits {
            queue: QueueLimits {
                qos0: true,
                ..QueueLimits::default()
            },
            ..Limits::default()
        };
        let (mut peer, _) = Peer::with(limits, &persistent(version));
        peer.session.journal_mut().set_on(true);
        peer.lose();
        peer.queued(QOS0, "a");
        peer.queued(QOS1, "b");
        peer.queued(QOS0, "c");
        // It does not survive a restart of the node.
        assert_eq!(peer.steps(), ["queued 1 q1 b"]);
        let lines = peer.reconnect(&persistent(version));
        assert_eq!(
            lines,
            ["PUBLISH 0 t=a", "PUBLISH 1 #1 t=b", "PUBLISH 0 t=c"]
        );
        assert_eq!(peer.session.outbound().backlog(), (0, 0, 1));
    }
}

#[test]
fn qos0_is_not_queued_for_an_ended_session_or_a_slow_client() {
    let limits = Limits {
        queue: QueueLimits {
            qos0: true,
            ..QueueLimits::default()
        },
        ..Limits::default()
    };
    let (mut peer, _) = Peer::with(limits, &connect(Version::V5));
    peer.session.link_mut().set_congested(true);
    let slow = Delivered::Dropped(DropReason::SlowConsumer);
    assert_eq!(peer.deliver(QOS0, "a").0, slow);
    assert!(peer.lose().session_ended);
    let offline = Delivered::Dropped(DropReason::Offline);
    assert_eq!(peer.deliver(QOS0, "a").0, offline);
}

// [MQTT-4.6.0-6] [MQTT3-4.6.0-6]
#[test]
fn new_qos0_messages_do_not_overtake_queued_ones() {
    let mut peer = away(Limits {
        queue: QueueLimits {
            qos0: true,
            ..QueueLimits::default()
        },
        ..Limits::default()
    });
    for payload in ["a", "b", "c"] {
        peer.queued(QOS1, payload);
    }
    peer.queued(QOS0, "d");
    assert_eq!(peer.reconnect(&windowed(2)).len(), 2);
    peer.queued(QOS0, "e");
    assert!(peer.pump(usize::MAX).1.is_empty());
    let expected = ["PUBLISH 1 #3 t=c", "PUBLISH 0 t=d", "PUBLISH 0 t=e"];
    assert_eq!(peer.send(&puback(1)).unwrap(), expected);
    assert_eq!(peer.sent(QOS0, "f"), "PUBLISH 0 t=f");
}

// [MQTT-3.3.4-9]
#[test]
fn queued_qos0_needs_no_room_in_the_window() {
    let mut peer = away(Limits {
        queue: QueueLimits {
            qos0: true,
            ..QueueLimits::default()
        },
        ..Limits::default()
    });
    peer.queued(QOS1, "a");
    peer.queued(QOS0, "b");
    peer.queued(QOS1, "c");
    let lines = peer.reconnect(&windowed(1));
    assert_eq!(lines, ["PUBLISH 1 #1 t=a", "PUBLISH 0 t=b"]);
}

#[test]
fn qos0_is_dropped_first_under_every_policy() {
    for queue_policy in [QueuePolicy::RejectNew, QueuePolicy::DropOldest] {
        let mut peer = away(Limits {
            queue: QueueLimits {
                qos0: true,
                policy: queue_policy,
                ..limits().queue
            },
            ..limits()
        });
        peer.queued(QOS1, "a");
        peer.queued(QOS0, "b");
        peer.queued(QOS0, "c");
        peer.queued(QOS2, "d");
        peer.queued(QOS1, "e");
        assert_eq!(peer.dropped(), [(DropReason::QueueDropped, 2)]);
        assert_eq!(peer.deliver(QOS0, "f").0, FULL);
        assert_eq!(payloads(&mut peer), ["a", "d", "e"]);
    }
}

#[test]
fn qos0_displaces_qos0_only_with_drop_oldest() {
    for (queue_policy, expected) in [
        (QueuePolicy::RejectNew, ["a", "b", "c"]),
        (QueuePolicy::DropOldest, ["b", "c", "d"]),
    ] {
        let mut peer = away(Limits {
            queue: QueueLimits {
                qos0: true,
                policy: queue_policy,
                ..limits().queue
            },
            ..limits()
        });
        for payload in ["a", "b", "c", "d"] {
            peer.deliver(QOS0, payload);
        }
        assert_eq!(payloads(&mut peer), expected);
    }
}

#[test]
fn queued_qos0_of_a_shared_subscription_goes_to_another_member() {
    let mut peer = away(Limits {
        queue: QueueLimits {
            qos0: true,
            ..QueueLimits::default()
        },
        ..Limits::default()
    });
    for (qos, group, payload) in [
        (QOS0, Some(1), "a"),
        (QOS1, Some(1), "b"),
        (QOS0, None, "c"),
        (QOS1, None, "d"),
        (QOS0, Some(1), "e"),
    ] {
        let options = DeliveryOptions {
            group,
            is_acknowledged: false,
            ..options(qos)
        };
        peer.deliver_publication(&publication("t", payload), &options);
    }
    let taken = peer.session.outbound_mut().take_shared(None);
    let taken: Vec<_> = taken.iter().map(|taken| taken.message.payload()).collect();
    assert_eq!(taken, [b"a", b"b", b"e"]);
    assert_eq!(peer.session.outbound().backlog(), (2, queue_bytes(2, 4), 0));
    assert_eq!(payloads(&mut peer), ["c", "d"]);
}

#[test]
fn a_message_over_the_age_limit_is_dropped_and_counted() {
    let mut peer = away(Limits {
        queue: QueueLimits {
            age_max: Some(10),
            qos0: true,
            ..QueueLimits::default()
        },
        ..Limits::default()
    });
    peer.queued(QOS1, "a");
    peer.queued(QOS0, "b");
    peer.advance_millis(5000);
    peer.queued(QOS1, "c");
    peer.advance_millis(5000);
    peer.queued(QOS1, "d");
    assert!(peer.dropped().is_empty(), "the age limit is ten seconds");
    peer.advance_millis(1000);
    // Stale messages are dropped from the front when a message arrives, and when they are next.
    peer.queued(QOS1, "e");
    assert_eq!(peer.dropped(), [(DropReason::QueueAge, 2)]);
    peer.advance_millis(5000);
    assert_eq!(payloads(&mut peer), ["d", "e"]);
    assert_eq!(peer.dropped(), [(DropReason::QueueAge, 1)]);
}

#[test]
fn the_age_limit_does_not_apply_to_sent_messages() {
    let mut peer = away(Limits {
        queue: QueueLimits {
            age_max: Some(10),
            ..QueueLimits::default()
        },
        ..Limits::default()
    });
    peer.queued(QOS1, "a");
    assert_eq!(payloads(&mut peer), ["a"]);
    peer.lose();
    peer.advance_millis(60_000);
    let lines = peer.reconnect(&persistent(Version::V5));
    assert_eq!(lines, ["PUBLISH 1 #1 dup t=a"]);
}

/// A message in a queue that is a plain list.
#[derive(Clone, Debug)]
struct Plain {
    payload: String,
    priority: u8,
    qos: QoS,
    since: u64,
}

impl Plain {
    fn bytes(&self) -> usize {
        queue_bytes(1, self.payload.len() + 1)
    }
}

/// A simple implementation of the queue's rules, as an oracle.
struct PlainQueue<'a> {
    limits: &'a Limits,
    list: Vec<Plain>,
}

impl PlainQueue<'_> {
    fn drop_old(&mut self, second: u64) {
        if let Some(max) = self.limits.queue.age_max {
            self.list
                .retain(|plain| second - plain.since <= u64::from(max));
        }
    }

    fn has_room(&self, bytes: usize) -> bool {
        let waiting: usize = self.list.iter().map(Plain::bytes).sum();
        self.list.len() < self.limits.queue.messages_max as usize
            && waiting + bytes <= self.limits.queue.bytes_max as usize
    }

    /// Position of the message that is dropped for another.
    fn victim(&self, new: &Plain) -> Option<usize> {
        let takes_oldest = self.limits.queue.policy == QueuePolicy::DropOldest;
        let lowest = |wanted: &dyn Fn(&Plain) -> bool| {
            let places = 0..self.list.len();
            let wanted = places.filter(|&place| wanted(&self.list[place]));
            wanted.min_by_key(|&place| self.list[place].priority)
        };
        let qos0 = lowest(&|plain| plain.qos == QOS0);
        if new.qos == QOS0 {
            return qos0.filter(|_| takes_oldest);
        }
        qos0.or_else(|| lowest(&|plain| plain.priority <= new.priority).filter(|_| takes_oldest))
    }

    fn push(&mut self, new: Plain) {
        self.drop_old(new.since);
        if new.bytes() > self.limits.queue.bytes_max as usize {
            return;
        }
        while !self.has_room(new.bytes()) {
            let Some(place) = self.victim(&new) else {
                return;
            };
            self.list.remove(place);
        }
        self.list.push(new);
    }

    fn payloads(&self) -> Vec<String> {
        let mut list: Vec<_> = self.list.iter().collect();
        list.sort_by_key(|plain| core::cmp::Reverse(plain.priority));
        list.iter().map(|plain| plain.payload.clone()).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_queue_agrees_with_the_oracle(
        takes_oldest in any::<bool>(),
        age in proptest::option::of(3..20_u32),
        messages in proptest::collection::vec((0..3_u8, 0..3_u8, 0..12_usize, 0..3_u64), 1..60),
    ) {
        let policy = if takes_oldest { QueuePolicy::DropOldest } else { QueuePolicy::RejectNew };
        let queue = QueueLimits {
            policy,
            messages_max: 6,
            bytes_max: queue_bytes_max(4, 30),
            qos0: true,
            age_max: age,
            priorities: priorities(&[("1", 1), ("2", 2)]),
        };
        let limits = Limits { queue, ..Limits::default() };
        let mut peer = away(limits.clone());
        let mut plain = PlainQueue { limits: &limits, list: Vec::new() };
        for (number, (qos, priority, len, seconds)) in messages.into_iter().enumerate() {
            peer.advance_millis(seconds * 1000);
            let new = Plain {
                payload: format!("{number}{}", "x".repeat(len)),
                priority,
                qos: QoS::from_u8(qos).unwrap(),
                since: peer.now.as_millis() / 1000,
            };
            let topic = priority.to_string();
            peer.deliver_publication(&publication(&topic, &new.payload), &options(new.qos));
            plain.push(new);
            let bytes = plain.list.iter().map(Plain::bytes).sum();
            prop_assert_eq!(peer.session.outbound().backlog(), (plain.list.len(), bytes, 0));
        }
        prop_assert_eq!(payloads(&mut peer), plain.payloads());
    }
}
