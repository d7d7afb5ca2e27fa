//! Cost of one message in the engine of a worker: a PUBLISH with `QoS` 1 to one receiver with `QoS`
//! 0, from its packet to the output taken, with what the edge does for it.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thrum_codec::packet::{
    Connect, Packet, Subscribe, SubscriptionOptions, SubscriptionRequest, SubscriptionRequests,
};
use thrum_codec::properties::{ConnectProperties, SubscribeProperties};
use thrum_codec::{QoS, TopicFilter, Version};
use thrum_engine::Engine;
use thrum_engine::access::{Shared, Verdict};
use thrum_engine::host::{Host, Surroundings};
use thrum_engine::ids::{ConnectionId, ConnectionKey, Slot};
use thrum_engine::node::placement::Placement;
use thrum_engine::node::session_counts::SessionLimits;
use thrum_engine::node::{Capacity, NodeParts, NodeState};
use thrum_engine::observation::observe_topics;
use thrum_engine::retained::RetainedLimits;
use thrum_engine::settings::{EngineSettings, SubscriptionLimits};
use thrum_engine::spans::SpanRules;
use thrum_engine::stages::{self, MovedBytes};
use thrum_engine::workers::WorkerId;
use thrum_protocol::Time;
use thrum_protocol::server::{ConnAckParts, Handshake};
use thrum_routing::shared::Strategy;

use crate::codec::{TOPIC, packet_id, publish};
use crate::repeat;

const NOW: Time = Time::from_millis(1_000);
/// Bytes of the PUBLISH, of which the edge tells the stages.
const PUBLISH_BYTES: usize = 60;

/// A clock that advances by a microsecond with each reading.
#[derive(Debug, Default)]
struct Steps(AtomicU64);

impl Host for Steps {
    fn elapsed(&self) -> Duration {
        Duration::from_micros(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn no_earlier_than_now(&self, turn: Time) -> Time {
        turn
    }

    fn resident_bytes(&self) -> Option<u64> {
        None
    }
}

/// No message is stamped.
pub(crate) fn publish_unstamped(times: u32) {
    publish_one_to_one(times, 0, None);
}

/// Messages are traced, but not this one: the price of the choice.
pub(crate) fn publish_untraced(times: u32) {
    publish_one_to_one(times, 0, Some(u32::MAX));
}

/// Each message is traced: a span of its hop and one of its delivery.
pub(crate) fn publish_traced(times: u32) {
    publish_one_to_one(times, 0, Some(1));
}

/// Each message is stamped: the difference to the case before is the cost of a stamp, of which a
/// message bears one part in `node.stamp_messages`.
pub(crate) fn publish_stamped(times: u32) {
    publish_one_to_one(times, 1, None);
}

/// Somebody looks at the tree of topics: the difference to the first case is what a message pays
/// for a topic of four levels.
pub(crate) fn publish_observed(times: u32) {
    let clock = Arc::new(Steps::default());
    let mut engine = engine(&clock, settings());
    observe_topics(&mut engine.core);
    publish_with(times, &clock, engine);
}

/// The messages of one filter are counted.
pub(crate) fn publish_metered(times: u32) {
    let clock = Arc::new(Steps::default());
    let mut engine = engine(&clock, settings());
    let metrics = &engine.core.node.topic_metrics;
    assert!(metrics.add("#", 1, NOW), "it is the first one");
    let metrics = metrics.current();
    engine.core.observation.set_metrics(metrics);
    publish_with(times, &clock, engine);
}

fn publish_one_to_one(times: u32, stamp_every: u32, trace_every: Option<u32>) {
    let clock = Arc::new(Steps::default());
    let rules = |every| SpanRules {
        every,
        follows_parent: false,
        filters: Vec::new(),
        publishers: None,
    };
    let settings = EngineSettings {
        stamp_every,
        spans: trace_every.map(rules).map(Arc::new),
        ..settings()
    };
    let engine = engine(&clock, settings);
    publish_with(times, &clock, engine);
}

fn publish_with(times: u32, clock: &Steps, mut engine: Engine) {
    let (_, receiver) = connected(&mut engine, "receiver");
    subscribe(&mut engine, receiver);
    let (connection, publisher) = connected(&mut engine, "publisher");
    write_all(&mut engine);
    repeat(times, || {
        let stages = &mut engine.core.stages;
        if stages.are_near(PUBLISH_BYTES) {
            stages.note_read(clock.elapsed());
        }
        let packet = black_box(Packet::Publish(publish()));
        handle(&mut engine, connection, publisher, packet);
        engine.core.stages.end_input();
        write_all(&mut engine)
    });
}

#[expect(
    clippy::large_types_passed_by_value,
    reason = "the engine takes the packet by value, too"
)]
fn handle(engine: &mut Engine, connection: ConnectionId, slot: Slot, packet: Packet<'_>) {
    let cleared = engine.clearance(connection, slot, &packet, Verdict::Allowed);
    let cleared = cleared.expect("no publisher waits");
    engine.packet(slot, packet, cleared).expect("no violation");
    engine.core.outputs.wrote(connection.key);
}

/// Takes the output of all connections, and returns its length.
fn write_all(engine: &mut Engine) -> usize {
    let listed = engine.core.outputs.take_listed();
    let bytes = listed.iter().map(|key| write(engine, *key)).sum();
    engine.core.outputs.give_back(listed);
    bytes
}

fn write(engine: &mut Engine, key: ConnectionKey) -> usize {
    let outputs = &mut engine.core.outputs;
    if !outputs.take_turn(key) {
        return 0;
    }
    let before = outputs[key].waiting();
    if let Some(out) = outputs[key].sendable() {
        out.clear();
    }
    let taken = before - outputs[key].waiting();
    if outputs[key].is_followed {
        let moved = MovedBytes {
            from_output: taken,
            into_socket: taken,
            in_layers: 0,
        };
        stages::written(&mut engine.core, key, moved);
    }
    let outputs = &mut engine.core.outputs;
    outputs[key].was_sent();
    if let Some(spare) = outputs[key].take_spare() {
        outputs.recycle(spare);
    }
    taken
}

fn engine(clock: &Arc<Steps>, settings: EngineSettings) -> Engine {
    let node = NodeState::new(NodeParts {
        placement: Placement::new(1),
        strategy: Strategy::RoundRobin,
        retained: settings.retained,
        mailbox: Capacity {
            messages: 1_000,
            bytes: 1 << 20,
        },
        bans: Arc::default(),
        wall: Arc::default(),
        identity: 1,
    });
    let host = Arc::clone(clock) as Arc<dyn Host>;
    let surroundings = Surroundings { host, now: NOW };
    Engine::new(
        WorkerId::new(0),
        &Arc::new(node),
        Arc::new(settings),
        surroundings,
    )
}

fn settings() -> EngineSettings {
    EngineSettings {
        stamp_every: 0,
        spans: None,
        timeline_bytes: 8 << 20,
        session: Arc::default(),
        queue_hold: Duration::ZERO,
        access: Arc::new(Shared::default()),
        sessions: SessionLimits {
            node: u64::MAX,
            user: 0,
            address: 0,
        },
        subscriptions: SubscriptionLimits {
            shared_max: 100,
            bytes_max: u32::MAX,
            packet_filters_max: 100,
            message_identifiers: 64,
        },
        output_bytes: 1 << 20,
        memory_bytes: 0,
        retained: RetainedLimits {
            message_count: 1_000,
            bytes: 1 << 20,
            payload_bytes: 1 << 20,
        },
        keeps_all_wills: false,
        published_qos_min: QoS::AtMostOnce,
    }
}

/// Connects a client.
fn connected(engine: &mut Engine, client_id: &str) -> (ConnectionId, Slot) {
    let connect = Connect {
        version: Version::V311,
        is_bridge: false,
        clean_start: true,
        keep_alive: 60,
        client_id,
        will: None,
        username: None,
        password: None,
        properties: ConnectProperties::default(),
    };
    let limits = Arc::clone(&engine.core.settings.session);
    let handshake = Handshake::new(&connect, "", &limits).expect("within the limits");
    let connection = engine.core.outputs.open();
    let slot = engine.begin_session(&handshake);
    engine.core.sessions[slot].take_rights(None);
    let counts = &engine.core.node.session_counts;
    let holder = counts.holder(None, None, &engine.core.settings.sessions);
    engine.core.outputs[connection.key].begin_session(slot);
    engine.core.sessions[slot].connection = Some(connection.key);
    engine.complete_connect(slot, handshake, ConnAckParts::default(), holder);
    (connection, slot)
}

fn subscribe(engine: &mut Engine, slot: Slot) {
    let requests = [SubscriptionRequest {
        filter: TopicFilter::parse(TOPIC).expect("a topic is a filter"),
        options: SubscriptionOptions::default(),
    }];
    let packet = Packet::Subscribe(Subscribe {
        packet_id: packet_id(1),
        properties: SubscribeProperties::default(),
        requests: SubscriptionRequests::Listed(&requests),
    });
    let key = engine.core.sessions[slot].connection;
    let connection = engine.core.outputs.id(key.expect("it is connected"));
    handle(engine, connection, slot, packet);
}
