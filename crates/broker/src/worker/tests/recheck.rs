//! Rules that change while messages wait.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use thrum_access::Rules;
use thrum_codec::packet::{
    Connect, Packet, Publish, Subscribe, SubscriptionOptions, SubscriptionRequest,
    SubscriptionRequests,
};
use thrum_codec::properties::{ConnectProperties, PublishProperties, SubscribeProperties};
use thrum_codec::{PacketId, QoS, TopicFilter};
use thrum_engine::access::{Access, Policy, RuleSource, Shared};

use super::{VERSION, Worker, bytes, connect, settle, two_workers_with};
use crate::config::{Anonymous, Config};
use crate::settings::Settings;

fn ruled_by(rules: &str) -> Access {
    Access {
        policy: Policy {
            rules: Arc::new(Rules::parse(rules, "test").unwrap()),
            order: vec![RuleSource::AllClients],
            allows_by_default: true,
            ..Access::default().policy
        },
        ..Access::default()
    }
}

fn config() -> Config {
    let mut config = Config::default();
    config.auth.anonymous = Anonymous::Allow;
    config
}

/// A session that is away and for which a message waits.
fn leave_with_a_message(workers: &mut [Worker; 2], client_id: &str) {
    let mut client = workers[0].accepted();
    let packet = Packet::Connect(Connect {
        version: VERSION,
        is_bridge: false,
        clean_start: false,
        keep_alive: 60,
        client_id,
        will: None,
        username: None,
        password: None,
        properties: ConnectProperties::default(),
    });
    client.write_all(&bytes(&packet)).unwrap();
    let requests = [SubscriptionRequest {
        filter: TopicFilter::parse("t").unwrap(),
        options: SubscriptionOptions {
            qos: QoS::AtLeastOnce,
            ..SubscriptionOptions::default()
        },
    }];
    let packet = Packet::Subscribe(Subscribe {
        packet_id: PacketId::new(1).unwrap(),
        properties: SubscribeProperties::default(),
        requests: SubscriptionRequests::Listed(&requests),
    });
    client.write_all(&bytes(&packet)).unwrap();
    settle(workers);
    drop(client);
    settle(workers);
}

#[test]
fn lines_about_dropped_messages_are_as_few_as_all_lines_about_clients() {
    const SESSIONS: u32 = 300;
    let mut workers = two_workers_with(|parts| {
        parts.config = config();
        parts.access = ruled_by("allow all pubsub #");
    });
    for number in 0..SESSIONS {
        leave_with_a_message(&mut workers, &format!("c{number}"));
    }
    let mut publisher = workers[0].accepted();
    publisher.write_all(&connect("publisher", None)).unwrap();
    let packet = Packet::Publish(Publish {
        dup: false,
        qos: QoS::AtLeastOnce,
        retain: false,
        topic: "t",
        packet_id: PacketId::new(1),
        properties: PublishProperties::default(),
        payload: b"waits",
    });
    publisher.write_all(&bytes(&packet)).unwrap();
    settle(&mut workers);
    let mut acknowledged = [0; 8];
    publisher.read_exact(&mut acknowledged).unwrap();
    let shared = Shared {
        access: ruled_by("deny all sub t\nallow all pubsub #"),
        generation: 1,
    };
    let worker = &mut workers[0];
    *worker.traffic.engine.core.log_lines_mut() = 0;
    worker.reload(&Arc::new(Settings::new(&config(), &Arc::new(shared))));
    while worker.traffic.recheck.is_under_way() {
        worker.traffic.recheck_some();
    }
    // One line for the subscriptions that ended, and one for the messages.
    assert_eq!(*worker.traffic.engine.core.log_lines_mut(), 2 * SESSIONS);
}
