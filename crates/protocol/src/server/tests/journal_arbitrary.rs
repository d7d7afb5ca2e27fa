//! For any sequence of events in a durable session, applying its steps yields its contents.

use alloc::vec;

use proptest::prelude::*;
use thrum_codec::packet::Will;
use thrum_codec::properties::WillProperties;

use super::journal_model::{Model, contents};
use super::*;

const TOPICS: [&str; 3] = ["t", "high", "higher"];

/// The next event.
#[derive(Clone, Debug)]
enum Event {
    Deliver {
        qos: u8,
        topic: usize,
        group: Option<u32>,
        expires: bool,
        len: usize,
    },
    /// The client acknowledges one of the deliveries in flight, or answers with an error.
    Answer {
        which: usize,
        error: bool,
    },
    /// PUBREC arrives a second time.
    RepeatedPubRec {
        which: usize,
    },
    Publish {
        packet_id: u16,
    },
    /// The node has routed the oldest message of the client.
    Routed {
        refused: bool,
    },
    Release {
        packet_id: u16,
    },
    ClientDisconnect {
        with_will: bool,
    },
    Disconnect {
        reason: ReasonCode,
    },
    Lost,
    Connect {
        window: u16,
        packet_bytes_max: u32,
        expiry: u32,
        will: bool,
    },
    Passed {
        seconds: u32,
    },
    Congested(bool),
    Pump,
    TakeShared(Option<u32>),
}

fn event() -> impl Strategy<Value = Event> {
    let deliver = (
        0..3_u8,
        0..TOPICS.len(),
        proptest::option::of(0..3_u32),
        any::<bool>(),
        0..60_usize,
    )
        .prop_map(|(qos, topic, group, expires, len)| Event::Deliver {
            qos,
            topic,
            group,
            expires,
            len,
        });
    let connect = (1..5_u16, 50..100_u32, 0..4_u32, any::<bool>()).prop_map(
        |(window, packet_bytes_max, expiry, will)| Event::Connect {
            window,
            packet_bytes_max,
            expiry: expiry * 50,
            will,
        },
    );
    let reason = prop_oneof![Just(ReasonCode::Success), Just(ReasonCode::ProtocolError)];
    prop_oneof![
        12 => deliver,
        12 => (any::<usize>(), proptest::bool::weighted(0.1))
            .prop_map(|(which, error)| Event::Answer { which, error }),
        1 => any::<usize>().prop_map(|which| Event::RepeatedPubRec { which }),
        4 => (1..6_u16).prop_map(|packet_id| Event::Publish { packet_id }),
        4 => any::<bool>().prop_map(|refused| Event::Routed { refused }),
        4 => (1..6_u16).prop_map(|packet_id| Event::Release { packet_id }),
        1 => any::<bool>().prop_map(|with_will| Event::ClientDisconnect { with_will }),
        1 => reason.prop_map(|reason| Event::Disconnect { reason }),
        2 => Just(Event::Lost),
        4 => connect,
        2 => (0..100_u32).prop_map(|seconds| Event::Passed { seconds }),
        2 => any::<bool>().prop_map(Event::Congested),
        2 => Just(Event::Pump),
        1 => proptest::option::of(0..3_u32).prop_map(Event::TakeShared),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    let policy = prop_oneof![Just(QueuePolicy::RejectNew), Just(QueuePolicy::DropOldest)];
    let age = proptest::option::of(50..200_u32);
    (policy, any::<bool>(), age, any::<bool>()).prop_map(
        |(queue_policy, queue_qos0, queue_age_max, has_priorities)| Limits {
            queue: QueueLimits {
                messages_max: 6,
                bytes_max: queue_bytes_max(5, 100),
                policy: queue_policy,
                qos0: queue_qos0,
                age_max: queue_age_max,
                priorities: if has_priorities {
                    priorities(&[("high", 9), ("higher", 10)])
                } else {
                    Vec::new()
                },
            },
            ..Limits::default()
        },
    )
}

struct Subject {
    peer: Peer,
    model: Model,
    /// `QoS` 2 messages that the node has not routed yet.
    unrouted: Vec<u16>,
    delivered: usize,
}

impl Subject {
    fn new(limits: Limits) -> Self {
        let (mut peer, _) = Peer::with(limits, &windowed(2));
        peer.session.journal_mut().set_on(true);
        peer.outcome = None;
        Self {
            peer,
            model: Model::default(),
            unrouted: Vec::new(),
            delivered: 0,
        }
    }

    fn step(&mut self, event: &Event) {
        match *event {
            Event::Deliver { .. } => self.deliver(event),
            Event::Answer { which, error } => self.answer(which, error),
            Event::RepeatedPubRec { which } => {
                let released: Vec<_> = self.peer.session.outbound.inflight.released().collect();
                if let Some(packet_id) = pick(&released, which) {
                    self.packet(&pubrec(packet_id.as_u16()));
                }
            }
            Event::Publish { packet_id } => {
                let routed = self.peer.routed.len();
                self.packet(&Packet::Publish(publish(QOS2, packet_id, "t", "x")));
                let is_new = self.peer.routed.len() > routed;
                self.unrouted.extend(is_new.then_some(packet_id));
            }
            Event::Routed { refused } if !self.unrouted.is_empty() => {
                let outcome = if refused {
                    ReasonCode::NotAuthorized
                } else {
                    ReasonCode::Success
                };
                let packet_id = self.unrouted.remove(0);
                self.peer.done(QOS2, packet_id, outcome);
            }
            Event::Routed { .. } => {}
            Event::Release { packet_id } if !self.unrouted.contains(&packet_id) => {
                self.packet(&pubrel(packet_id));
            }
            Event::Release { .. } => {}
            Event::TakeShared(group) => {
                let taken = self
                    .peer
                    .session
                    .outbound_mut()
                    .take_shared(group.as_ref().map(std::slice::from_ref));
                // The caller moved them to another session; those with QoS 0 are not persisted.
                for seq in taken.iter().filter_map(|taken| taken.seq) {
                    assert!(self.model.deliveries.remove(&seq).is_some());
                }
            }
            _ => self.change_connection(event),
        }
        self.check();
    }

    fn change_connection(&mut self, event: &Event) {
        match *event {
            Event::ClientDisconnect { with_will: true } => {
                self.packet(&client_disconnect(ReasonCode::DisconnectWithWill));
            }
            Event::ClientDisconnect { with_will: false } => {
                self.packet(&client_disconnect(ReasonCode::Success));
            }
            Event::Disconnect { reason } => {
                self.peer.disconnect(reason, None);
            }
            Event::Lost => {
                self.peer.lose();
            }
            Event::Connect { .. } => self.connect(event),
            Event::Passed { seconds } => {
                self.peer.advance_millis(u64::from(seconds) * 1000);
                self.peer.session.handle_timeout(self.peer.now);
            }
            Event::Congested(congested) => self.peer.session.link_mut().set_congested(congested),
            Event::Pump => {
                self.peer.pump(100);
            }
            ref other => unreachable!("{other:?}"),
        }
    }

    fn packet(&mut self, packet: &Packet<'_>) {
        self.peer.send(packet).unwrap();
    }

    fn deliver(&mut self, event: &Event) {
        let Event::Deliver {
            qos,
            topic,
            group,
            expires,
            len,
        } = *event
        else {
            unreachable!()
        };
        self.delivered += 1;
        let payload = format!("{}{}", self.delivered, "x".repeat(len));
        let message = Publication {
            expires_at: expires.then(|| self.peer.now.plus_secs(50)),
            ..publication(TOPICS[topic], &payload)
        };
        let options = DeliveryOptions {
            group,
            is_acknowledged: false,
            retain: expires,
            identifiers: &[1, 2][..len % 3],
            ..options(QoS::from_u8(qos).unwrap())
        };
        self.peer.deliver_publication(&message, &options);
    }

    fn answer(&mut self, which: usize, error: bool) {
        let inflight = self.peer.session.outbound.inflight.iter();
        let inflight: Vec<_> = inflight.map(|(id, awaiting, _)| (id, awaiting)).collect();
        let Some((packet_id, awaiting)) = pick(&inflight, which) else {
            return;
        };
        let reason = if error {
            ReasonCode::QuotaExceeded
        } else {
            ReasonCode::Success
        };
        let ack = match awaiting {
            Awaiting::PubAck => Packet::PubAck(ack_with(packet_id.as_u16(), reason)),
            Awaiting::PubRec => Packet::PubRec(ack_with(packet_id.as_u16(), reason)),
            Awaiting::PubComp => pubcomp(packet_id.as_u16()),
        };
        self.packet(&ack);
    }

    fn connect(&mut self, event: &Event) {
        let Event::Connect {
            window,
            packet_bytes_max,
            expiry,
            will,
        } = *event
        else {
            unreachable!()
        };
        self.peer.lose();
        let mut connect = windowed(window);
        connect.properties.session_expiry = Some(expiry);
        connect.properties.maximum_packet_size = Some(packet_bytes_max);
        connect.will = will.then(|| Will {
            topic: "w",
            payload: b"gone",
            qos: QOS1,
            retain: false,
            properties: WillProperties {
                will_delay: Some(expiry / 2),
                ..WillProperties::default()
            },
        });
        self.record();
        self.peer.reconnect(&connect);
        self.model.has_will = will;
    }

    fn record(&mut self) {
        for step in self
            .peer
            .session
            .journal_mut()
            .take_steps()
            .unwrap_or_default()
            .iter()
        {
            self.model.apply(step, self.peer.now);
        }
    }

    fn check(&mut self) {
        self.record();
        let live = &self.peer.session;
        let mut restored = self.model.restored(live);
        assert!(
            !restored.journal.has_steps(),
            "{:?}",
            restored.journal.take_steps()
        );
        assert_eq!(contents(&restored), contents(live));
        assert_eq!(restored.outbound().backlog().2, live.outbound().backlog().2);
        assert_eq!(self.model.has_will, live.will().is_some());
    }

    /// Checks that the restored session behaves like the original one.
    fn check_next_connection(mut self) {
        let connect = windowed(100);
        let session = self.model.restored(&self.peer.session);
        let mut other = Peer {
            session,
            now: self.peer.now,
            frames: FrameCache::default(),
            routed: Vec::new(),
            outcome: None,
            authentications: Vec::new(),
        };
        self.peer.lose();
        self.peer.steps();
        // QoS 0 is not restored.
        let mut lines = self.peer.reconnect(&connect);
        lines.retain(|line| !line.starts_with("PUBLISH 0"));
        assert_eq!(other.reconnect(&connect), lines);
        assert_eq!(other.deliver(QOS1, "new"), self.peer.deliver(QOS1, "new"));
        // With priorities the original session may have assigned new sequence numbers for an order
        // that no longer matters.
        if other.session.limits.queue.priorities.is_empty() {
            assert_eq!(other.steps(), self.peer.steps());
            assert_eq!(contents(&other.session), contents(&self.peer.session));
        }
    }
}

fn pick<T: Copy>(list: &[T], which: usize) -> Option<T> {
    list.get(which.checked_rem(list.len())?).copied()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn applying_the_steps_yields_the_contents_of_the_session(
        limits in limits(),
        events in proptest::collection::vec(event(), 1..120),
    ) {
        let mut subject = Subject::new(limits);
        for event in &events {
            subject.step(event);
        }
        subject.check_next_connection();
    }
}
