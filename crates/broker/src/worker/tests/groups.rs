//! Shared groups that choose their member by a hash: the same member, whichever worker chooses.

use std::io::Write;
use std::os::unix::net::UnixStream;

use thrum_codec::packet::{
    Packet, Subscribe, SubscriptionOptions, SubscriptionRequest, SubscriptionRequests,
};
use thrum_codec::properties::SubscribeProperties;
use thrum_codec::{PacketId, TopicFilter};
use thrum_routing::Strategy;

use super::{Worker, bytes, connect, messages, publish, settle, two_workers_with};

/// Members on each worker.
const MEMBERS: usize = 8;

fn subscribe_shared() -> Vec<u8> {
    let requests = [SubscriptionRequest {
        filter: TopicFilter::parse("$share/g/t").unwrap(),
        options: SubscriptionOptions::default(),
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

/// Publishers with these client identifiers come to both workers, publish once and go; how many members got something.
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
fn a_publisher_that_comes_back_clean_and_to_another_worker_keeps_its_member() {
    assert_eq!(members_reached(Strategy::HashClientId, ["p", "p"]), 1);
}

#[test]
fn publishers_are_spread_over_the_members_by_their_client_identifiers() {
    let reached = |publishers| members_reached(Strategy::HashClientId, publishers);
    let pairs = [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"]];
    assert!(pairs.into_iter().any(|pair| reached(pair) == 2));
}
