//! Shared groups that choose their member by a hash: the same member, whichever worker chooses.

use std::io::Write;
use std::os::unix::net::UnixStream;

use thrum_codec::packet::{
    Packet, Publish, Subscribe, SubscriptionOptions, SubscriptionRequest, SubscriptionRequests,
    TopicFilters, Unsubscribe,
};
use thrum_codec::properties::{PublishProperties, SubscribeProperties, UserProperties};
use thrum_codec::{PacketId, QoS, TopicFilter};
use thrum_routing::Strategy;

use super::{Worker, bytes, connect, messages, publish, settle, two_workers_with};

/// Members on each worker.
const MEMBERS: usize = 8;

fn subscribe_shared() -> Vec<u8> {
    subscribe_to("$share/g/t", QoS::AtMostOnce)
}

fn subscribe_to(filter: &str, qos: QoS) -> Vec<u8> {
    let requests = [SubscriptionRequest {
        filter: TopicFilter::parse(filter).unwrap(),
        options: SubscriptionOptions {
            qos,
            ..SubscriptionOptions::default()
        },
    }];
    bytes(&Packet::Subscribe(Subscribe {
        packet_id: PacketId::new(1).unwrap(),
        properties: SubscribeProperties::default(),
        requests: SubscriptionRequests::Listed(&requests),
    }))
}

fn client(workers: &mut [Worker; 2], worker: usize, client_id: &str) -> UnixStream {
    let mut client = workers[worker].accepted();
    client.write_all(&connect(client_id, None)).unwrap();
    settle(workers);
    client
}

/// Publishers with these client identifiers connect to both workers, publish once and leave;
/// returns the number of members that received a message.
fn members_reached(strategy: Strategy, publishers: [&str; 2]) -> usize {
    let mut workers = two_workers_with(|parts| parts.config.shared.strategy = strategy);
    let mut members = Vec::new();
    for number in 0..2 * MEMBERS {
        let mut member = client(&mut workers, number % 2, &format!("m{number}"));
        member.write_all(&subscribe_shared()).unwrap();
        members.push(member);
    }
    settle(&mut workers);
    for (worker, client_id) in publishers.into_iter().enumerate() {
        let mut publisher = client(&mut workers, worker, client_id);
        publisher.write_all(&publish(b"x")).unwrap();
        settle(&mut workers);
        drop(publisher);
        settle(&mut workers);
    }
    let mut reached = 0;
    for member in &mut members {
        reached += usize::from(!messages(member).is_empty());
    }
    reached
}

#[test]
fn a_topic_has_the_same_member_whichever_worker_its_publisher_is_on() {
    assert_eq!(members_reached(Strategy::HashTopic, ["p", "q"]), 1);
}

#[test]
fn a_publisher_that_reconnects_clean_to_another_worker_keeps_its_member() {
    assert_eq!(members_reached(Strategy::HashClientId, ["p", "p"]), 1);
}

#[test]
fn publishers_are_spread_over_the_members_by_their_client_identifiers() {
    let reached = |publishers| members_reached(Strategy::HashClientId, publishers);
    let pairs = [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"]];
    assert!(pairs.into_iter().any(|pair| reached(pair) == 2));
}

// [MQTT-3.10.4-3] [MQTT3-3.10.4-3]
#[test]
fn one_unsubscribe_moves_waiting_messages_of_several_groups_to_their_other_members() {
    const GROUPS: [&str; 3] = ["$share/g/t", "$share/h/t", "$share/i/t"];
    let mut workers = two_workers_with(|parts| parts.config.limits.client.inflight = 1);
    let join = |workers: &mut [Worker; 2], client_id| {
        let mut member = client(workers, 0, client_id);
        for group in GROUPS {
            member
                .write_all(&subscribe_to(group, QoS::AtLeastOnce))
                .unwrap();
        }
        settle(workers);
        member
    };
    let mut leaves = join(&mut workers, "leaves");
    let mut publisher = client(&mut workers, 0, "publisher");
    let message = bytes(&Packet::Publish(Publish {
        dup: false,
        qos: QoS::AtLeastOnce,
        retain: false,
        topic: "t",
        packet_id: PacketId::new(1),
        properties: PublishProperties::default(),
        payload: b"x",
    }));
    publisher.write_all(&message).unwrap();
    settle(&mut workers);
    let waiting = |workers: &[Worker; 2], client_id| {
        let slot = workers[0]
            .traffic
            .engine
            .core
            .sessions
            .find(client_id)
            .unwrap();
        let (queued, _, inflight) = workers[0].traffic.engine.core.sessions[slot]
            .session
            .outbound()
            .backlog();
        (queued, inflight)
    };
    assert_eq!(waiting(&workers, "leaves"), (2, 1));
    let _stays = join(&mut workers, "stays");
    // Not in the order in which it has joined.
    let filters =
        [GROUPS[2], GROUPS[0], GROUPS[1]].map(|filter| TopicFilter::parse(filter).unwrap());
    let packet = Packet::Unsubscribe(Unsubscribe {
        packet_id: PacketId::new(2).unwrap(),
        user: UserProperties::default(),
        filters: TopicFilters::Listed(&filters),
    });
    leaves.write_all(&bytes(&packet)).unwrap();
    settle(&mut workers);
    assert_eq!(waiting(&workers, "leaves"), (0, 1));
    assert_eq!(waiting(&workers, "stays"), (1, 1));
}
