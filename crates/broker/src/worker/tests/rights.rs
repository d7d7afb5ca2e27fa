//! Clients that reconnect: their sessions are reviewed only if their rights have changed.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use thrum_access::Rules;
use thrum_codec::packet::{
    Packet, Subscribe, SubscriptionOptions, SubscriptionRequest, SubscriptionRequests,
};
use thrum_codec::properties::SubscribeProperties;
use thrum_codec::{PacketId, TopicFilter, Version, encode};
use thrum_engine::access::Policy;
use thrum_engine::turn::FILTER_UNITS;

use super::{connect_v5, settle, two_workers_with};

const FILTERS: u16 = 200;

fn subscribe(client: &mut UnixStream) {
    let filters: Vec<_> = (0..FILTERS).map(|number| format!("a/{number}")).collect();
    let requests: Vec<_> = filters
        .iter()
        .map(|filter| SubscriptionRequest {
            filter: TopicFilter::parse(filter).unwrap(),
            options: SubscriptionOptions::default(),
        })
        .collect();
    let packet = Packet::Subscribe(Subscribe {
        packet_id: PacketId::new(1).unwrap(),
        properties: SubscribeProperties::default(),
        requests: SubscriptionRequests::Listed(&requests),
    });
    let mut bytes = Vec::new();
    encode(&packet, Version::V5, &mut bytes).unwrap();
    client.write_all(&bytes).unwrap();
}

#[test]
fn a_client_that_returns_with_unchanged_rights_needs_no_review() {
    let mut workers = two_workers_with(|parts| {
        let rules = Rules::parse("allow all pubsub a/#", "test").unwrap();
        parts.access.policy = Policy {
            rules: Arc::new(rules),
            allows_by_default: false,
            ..Policy::default()
        };
    });
    let mut client = workers[0].accepted();
    client.write_all(&connect_v5("device", 300)).unwrap();
    settle(&mut workers);
    subscribe(&mut client);
    settle(&mut workers);
    drop(client);
    settle(&mut workers);
    let slot = workers[0]
        .traffic
        .engine
        .core
        .sessions
        .find("device")
        .unwrap();
    let kept = workers[0].traffic.engine.core.sessions[slot]
        .subscriptions
        .len();
    assert_eq!(kept, usize::from(FILTERS));

    let before = workers[0].traffic.engine.core.turn.work;
    let mut back = workers[0].accepted();
    back.write_all(&connect_v5("device", 300)).unwrap();
    settle(&mut workers);
    assert!(
        workers[0].traffic.engine.core.sessions[slot]
            .connection
            .is_some()
    );
    let work = workers[0].traffic.engine.core.turn.work - before;
    assert!(work < u64::from(FILTERS) * FILTER_UNITS, "{work} units");
}
