//! A node over real sockets, with one and with several workers: what needs workers to work
//! together.

mod anonymous;
mod certificates;
mod events;
mod gatekeeper;
mod inspection;
mod large;
mod limits;
mod listeners;
mod options;
mod owners;
mod peer;
mod protection;
mod queries;
mod queue;
mod quic;
mod retained;
mod rights;
mod sinks;
mod topics;
mod wills;
mod workers;

use std::time::Duration;

use peer::{Peer, connect_packet, start, will};
use thrum_codec::packet::SubscriptionOptions;
use thrum_codec::{QoS, ReasonCode, Version};

/// With four workers, that many clients surely sit on more than one.
const CLIENTS: usize = 24;

#[test]
fn a_message_reaches_subscribers_on_every_worker_once() {
    let (broker, address) = start(4, |_| {});
    let mut subscribers: Vec<Peer> = (0..CLIENTS)
        .map(|number| Peer::connect(address, &format!("s{number}")))
        .collect();
    for subscriber in &mut subscribers {
        assert_eq!(
            subscriber.subscribe("a/+", QoS::AtLeastOnce),
            ReasonCode::GrantedQoS1
        );
    }
    let mut publisher = Peer::connect(address, "p");
    assert_eq!(
        publisher.publish_acknowledged("a/b", b"one"),
        ReasonCode::Success
    );
    for subscriber in &mut subscribers {
        assert_eq!(subscriber.message().payload, b"one");
        subscriber.assert_silent();
    }
    broker.stop();
}

// [MQTT-4.6.0-6] [MQTT3-4.6.0-6]
#[test]
fn order_of_one_publisher_is_kept_across_workers() {
    let (broker, address) = start(4, |_| {});
    let mut subscribers: Vec<Peer> = (0..CLIENTS)
        .map(|number| Peer::connect(address, &format!("s{number}")))
        .collect();
    for subscriber in &mut subscribers {
        subscriber.subscribe("order", QoS::AtMostOnce);
    }
    let mut publisher = Peer::connect(address, "p");
    for number in 0..500_u32 {
        publisher.publish("order", &number.to_be_bytes(), QoS::AtMostOnce, false);
    }
    for subscriber in &mut subscribers {
        for number in 0..500_u32 {
            assert_eq!(subscriber.message().payload, number.to_be_bytes());
        }
    }
    broker.stop();
}

// [MQTT-3.1.4-3] [MQTT3-3.1.4-2]
#[test]
fn the_same_client_identifier_takes_over_wherever_it_connects() {
    let (broker, address) = start(4, |_| {});
    let (mut current, present) = Peer::resume(address, "same");
    assert!(!present);
    current.subscribe("t", QoS::AtLeastOnce);
    for round in 0..CLIENTS {
        let (next, present) = Peer::resume(address, "same");
        assert!(present, "round {round}");
        assert_eq!(current.disconnect_reason(), ReasonCode::SessionTakenOver);
        current.assert_closed();
        current = next;
    }
    let mut publisher = Peer::connect(address, "p");
    publisher.publish_acknowledged("t", b"still subscribed");
    assert_eq!(current.message().payload, b"still subscribed");
    assert_eq!(broker.clients_connected(), 2);
    broker.stop();
}

#[test]
fn an_absent_session_is_found_by_any_worker_with_what_it_missed() {
    let (broker, address) = start(4, |_| {});
    let (mut peer, _) = Peer::resume(address, "away");
    peer.subscribe("t", QoS::AtLeastOnce);
    let mut publisher = Peer::connect(address, "p");
    for round in 0..CLIENTS {
        peer.disconnect();
        let payload = format!("round {round}");
        // The DISCONNECT may still be on its way: the message is queued, or sent without
        // acknowledgement.
        assert_eq!(
            publisher.publish_acknowledged("t", payload.as_bytes()),
            ReasonCode::Success
        );
        let present;
        (peer, present) = Peer::resume(address, "away");
        assert!(present);
        let message = peer.message();
        assert_eq!(message.payload, payload.as_bytes());
        peer.acknowledge(message.id);
    }
    broker.stop();
}

// [MQTT-4.8.2-4]
#[test]
fn a_shared_group_gets_each_message_once_over_all_workers() {
    let (broker, address) = start(4, |_| {});
    let mut members: Vec<Peer> = (0..8)
        .map(|number| Peer::connect(address, &format!("m{number}")))
        .collect();
    for member in &mut members {
        assert_eq!(
            member.subscribe("$share/g/a/#", QoS::AtLeastOnce),
            ReasonCode::GrantedQoS1
        );
    }
    let mut publisher = Peer::connect(address, "p");
    for number in 0..80_u8 {
        publisher.publish_acknowledged(&format!("a/{}", number % 7), &[number]);
    }
    let mut seen = Vec::new();
    for member in &mut members {
        for _ in 0..10 {
            seen.push(member.message().payload[0]);
        }
        member.assert_silent();
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..80).collect::<Vec<_>>());
    broker.stop();
}

#[test]
fn messages_of_a_group_member_that_leaves_go_to_another() {
    let (broker, address) = start(4, |_| {});
    let mut leaving = Peer::connect(address, "leaving");
    leaving.subscribe("$queue/jobs", QoS::AtLeastOnce);
    let mut publisher = Peer::connect(address, "p");
    for number in 0..10_u8 {
        publisher.publish_acknowledged("jobs", &[number]);
        assert_eq!(leaving.message().payload, [number]);
    }
    let mut staying = Peer::connect(address, "staying");
    staying.subscribe("$queue/jobs", QoS::AtLeastOnce);
    drop(leaving);
    let mut seen: Vec<u8> = (0..10).map(|_| staying.message().payload[0]).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..10).collect::<Vec<_>>());
    broker.stop();
}

// [MQTT-3.3.4-2] [MQTT-3.3.4-3] [MQTT-3.3.4-4] [MQTT3-3.3.5-1]
#[test]
fn overlapping_subscriptions_deliver_once_with_the_highest_qos_and_all_identifiers() {
    let (broker, address) = start(1, |_| {});
    let mut peer = Peer::connect(address, "overlap");
    let options = |qos| SubscriptionOptions {
        qos,
        ..Default::default()
    };
    peer.subscribe_with("a/#", options(QoS::AtMostOnce), Some(3));
    peer.subscribe_with("a/+", options(QoS::ExactlyOnce), Some(5));
    peer.subscribe_with("a/b", options(QoS::AtLeastOnce), None);
    Peer::connect(address, "p").publish("a/b", b"x", QoS::ExactlyOnce, false);
    let message = peer.message();
    assert_eq!(message.qos, QoS::ExactlyOnce);
    let mut identifiers = message.identifiers;
    identifiers.sort_unstable();
    assert_eq!(identifiers, [3, 5]);
    peer.assert_silent();
    broker.stop();
}

// [MQTT-3.3.1-5] [MQTT-3.3.1-6] [MQTT-3.3.1-8] [MQTT-3.3.1-12] [MQTT3-3.3.1-8] [MQTT3-3.3.1-9]
// [MQTT3-3.3.1-10]
#[test]
fn retained_messages_are_seen_from_every_worker_and_removed_by_an_empty_one() {
    let (broker, address) = start(4, |_| {});
    let mut publisher = Peer::connect(address, "p");
    let mut live = Peer::connect(address, "live");
    live.subscribe("r/#", QoS::AtMostOnce);
    publisher.publish("r/1", b"kept", QoS::AtMostOnce, true);
    assert!(!live.message().retain);
    for number in 0..8 {
        let mut late = Peer::connect(address, &format!("late{number}"));
        late.subscribe("r/+", QoS::AtMostOnce);
        let message = late.message();
        assert!(message.retain);
        assert_eq!(message.payload, b"kept");
    }
    publisher.publish("r/1", b"", QoS::AtMostOnce, true);
    assert_eq!(live.message().payload, b"");
    let mut late = Peer::connect(address, "late");
    late.subscribe("r/+", QoS::AtMostOnce);
    late.assert_silent();
    broker.stop();
}

#[test]
fn ten_thousand_retained_messages_all_arrive() {
    let (broker, address) = start(2, |config| config.limits.client.inflight = 16);
    let mut publisher = Peer::connect(address, "p");
    for number in 0..10_000_u32 {
        let topic = format!("many/{}/{number}", number % 100);
        publisher.publish(&topic, &number.to_be_bytes(), QoS::AtMostOnce, true);
    }
    publisher.publish_acknowledged("end", b"");
    let mut peer = Peer::connect(address, "late");
    peer.subscribe("many/#", QoS::AtMostOnce);
    let mut seen: Vec<u32> = (0..10_000)
        .map(|_| u32::from_be_bytes(peer.message().payload.try_into().expect("four bytes")))
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..10_000).collect::<Vec<_>>());
    broker.stop();
}

#[test]
fn a_replay_that_searches_for_several_turns_ends_with_what_it_finds() {
    for workers in [1, 2] {
        let (broker, address) = start(workers, |_| {});
        let mut publisher = Peer::connect(address, "p");
        for number in 0..12_000 {
            publisher.publish(&format!("{number}/x"), b"x", QoS::AtMostOnce, true);
        }
        publisher.publish("last/y", b"found", QoS::AtMostOnce, true);
        publisher.publish_acknowledged("end", b"");
        let mut searchers: Vec<Peer> = (0..3)
            .map(|number| Peer::connect(address, &format!("s{number}")))
            .collect();
        for searcher in &mut searchers {
            searcher.subscribe("+/y", QoS::AtMostOnce);
        }
        for searcher in &mut searchers {
            assert_eq!(searcher.message().payload, b"found");
        }
        broker.stop();
    }
}

// [MQTT-3.1.2-8] [MQTT3-3.1.2-8]
#[test]
fn wills_reach_subscribers_when_the_broker_stops() {
    let (broker, address) = start(4, |_| {});
    let mut watcher = Peer::connect(address, "watcher");
    watcher.subscribe("wills/#", QoS::AtLeastOnce);
    let mut peers = Vec::new();
    for number in 0..8 {
        let topic = format!("wills/{number}");
        let id = format!("w{number}");
        let mut peer = Peer::open(address, Version::V5);
        let mut connect = connect_packet(Version::V5, &id);
        connect.will = Some(will(&topic, b"gone"));
        assert_eq!(peer.handshake(&connect).0, ReasonCode::Success);
        peers.push(peer);
    }
    broker.stop();
    let mut topics: Vec<String> = (0..8).map(|_| watcher.message().topic).collect();
    topics.sort_unstable();
    assert_eq!(
        topics,
        (0..8)
            .map(|number| format!("wills/{number}"))
            .collect::<Vec<_>>()
    );
    assert_eq!(watcher.disconnect_reason(), ReasonCode::ServerShuttingDown);
    watcher.assert_closed();
}

#[test]
fn a_subscriber_that_does_not_read_costs_only_itself() {
    let (broker, address) = start(2, |config| {
        config.limits.output_bytes = 64 * 1024;
        config.limits.client.queue = 100;
    });
    let mut stuck = Peer::connect(address, "stuck");
    stuck.subscribe("flood", QoS::AtLeastOnce);
    let mut healthy = Peer::connect(address, "healthy");
    healthy.subscribe("flood", QoS::AtLeastOnce);
    let mut publisher = Peer::connect(address, "p");
    let payload = vec![7; 16 * 1024];
    for _ in 0..1500 {
        assert_eq!(
            publisher.publish_acknowledged("flood", &payload),
            ReasonCode::Success
        );
        let message = healthy.message();
        assert_eq!(message.payload.len(), payload.len());
        healthy.acknowledge(message.id);
    }
    broker.stop();
}

#[test]
fn a_connection_over_the_limit_receives_the_reason() {
    let (broker, address) = start(2, |config| config.limits.connections = 2);
    let _first = Peer::connect(address, "1");
    let _second = Peer::connect(address, "2");
    let mut third = Peer::open(address, Version::V5);
    let refusal = third.handshake(&connect_packet(Version::V5, "3"));
    assert_eq!(refusal, (ReasonCode::QuotaExceeded, false));
    third.assert_closed();
    broker.stop();
}

#[test]
fn a_client_takes_its_own_place_over_where_no_other_is_left() {
    for workers in [1, 4] {
        let (broker, address) = start(workers, |config| config.limits.connections = 2);
        let mut first = Peer::connect(address, "1");
        let _second = Peer::connect(address, "2");
        let again = Peer::connect(address, "1");
        assert_eq!(first.disconnect_reason(), ReasonCode::SessionTakenOver);
        // A session that waits for its client has no place.
        let mut third = Peer::open(address, Version::V5);
        let refusal = third.handshake(&connect_packet(Version::V5, "3"));
        assert_eq!(refusal, (ReasonCode::QuotaExceeded, false));
        drop(again);
        broker.stop();
    }
}

#[test]
fn a_reload_changes_limits_for_new_sessions_and_names_what_waits() {
    let mut started = None;
    let (mut broker, address) = start(2, |config| started = Some(config.clone()));
    let mut config = started.expect("the broker was configured");
    config.node.workers = thrum_broker::config::Workers::Count(1);
    config.limits.client.subscriptions = 1;
    let (waiting, settling) = broker.reload(&config).expect("nothing new to listen on");
    assert_eq!(settling.wait(Duration::from_secs(5)), Ok(()));
    assert_eq!(waiting, ["node.workers"]);
    let mut peer = Peer::connect(address, "limited");
    assert_eq!(peer.subscribe("a", QoS::AtMostOnce), ReasonCode::Success);
    assert_eq!(
        peer.subscribe("b", QoS::AtMostOnce),
        ReasonCode::QuotaExceeded
    );
    broker.stop();
}

#[test]
fn connections_over_the_connect_rate_wait_and_are_then_served() {
    let (broker, address) = start(1, |config| config.limits.connect_rate = 20);
    // The connections of one second are accepted at once, the others at the rate.
    let peers: Vec<Peer> = (0..25)
        .map(|number| Peer::connect(address, &format!("c{number}")))
        .collect();
    assert_eq!(
        broker.clients_connected(),
        u64::try_from(peers.len()).expect("few")
    );
    broker.stop();
}

// [MQTT-3.2.2-10]
#[test]
fn a_subscription_above_the_maximum_qos_is_granted_at_the_maximum() {
    let (broker, address) = start(1, |config| config.limits.packet.max_qos = 1);
    let mut peer = Peer::connect(address, "c");
    assert_eq!(
        peer.subscribe("t", QoS::ExactlyOnce),
        ReasonCode::GrantedQoS1
    );
    assert_eq!(
        peer.subscribe("$share/g/t", QoS::ExactlyOnce),
        ReasonCode::GrantedQoS1
    );
    broker.stop();
}

#[test]
fn reached_limits_are_counted_under_their_names() {
    let (broker, address) = start(1, |config| {
        config.limits.client.subscriptions = 1;
        config.limits.connections = 3;
        config.sys.interval = Duration::from_millis(100);
    });
    let mut greedy = Peer::connect(address, "greedy");
    greedy.subscribe("first", QoS::AtMostOnce);
    greedy.subscribe("second", QoS::AtMostOnce);
    let mut peer = Peer::connect(address, "c");
    peer.subscribe("$SYS/broker/limits/+/+", QoS::AtMostOnce);
    let topic = "$SYS/broker/limits/client/subscriptions";
    let counted = (0..100)
        .map(|_| peer.message())
        .find(|message| message.topic == topic && message.payload == b"1");
    assert!(counted.is_some());
    broker.stop();
}

#[test]
fn memory_over_its_limit_stops_no_publisher_whose_messages_pass_through() {
    let mut used = None;
    let (mut broker, address) = start(2, |config| {
        config.sys.interval = Duration::from_millis(100);
        used = Some(config.clone());
    });
    let mut watcher = Peer::connect(address, "watcher");
    let mut subscriber = Peer::connect(address, "s");
    subscriber.subscribe("t", QoS::AtLeastOnce);
    let mut publisher = Peer::connect(address, "p");
    let mut config = used.expect("the configuration of the start");
    // Any process is larger: memory is exhausted from the next look on, for good. What passes
    // through goes on.
    config.limits.memory = 1;
    broker.reload(&config).expect("nothing to bind");
    watcher.subscribe("$SYS/broker/limits/memory", QoS::AtMostOnce);
    while watcher.message().payload == b"0" {}
    for number in 0..5_u8 {
        assert_eq!(
            publisher.publish_acknowledged("t", &[number]),
            ReasonCode::Success
        );
        let message = subscriber.message();
        assert_eq!(message.payload, [number]);
        subscriber.acknowledge(message.id);
    }
    broker.stop();
}

#[test]
fn clients_of_ipv4_and_ipv6_reach_each_other() {
    let six: std::net::SocketAddr = "[::1]:0".parse().expect("an address");
    if std::net::TcpListener::bind(six).is_err() {
        // This machine has no IPv6, so there is nothing to listen on.
        return;
    }
    let (broker, four) = start(2, |config| {
        let listener = config
            .listeners
            .get_mut("mqtt")
            .expect("the test's listener");
        listener.bind.push(six.into());
    });
    let six = broker.addresses()[1]
        .socket_address()
        .expect("it listens on TCP");
    let mut subscriber = Peer::connect(six, "six");
    subscriber.subscribe("t", QoS::AtLeastOnce);
    let mut publisher = Peer::connect(four, "four");
    assert_eq!(
        publisher.publish_acknowledged("t", b"across"),
        ReasonCode::Success
    );
    assert_eq!(subscriber.message().payload, b"across");
    broker.stop();
}

#[test]
fn sys_topics_count_bytes_sent_and_are_turned_on_by_a_reload() {
    let mut fresh = None;
    let (mut broker, address) = start(1, |config| {
        config.sys.interval = Duration::ZERO;
        fresh = Some(config.clone());
    });
    let mut peer = Peer::connect(address, "c");
    peer.subscribe("$SYS/broker/publish/bytes/sent", QoS::AtMostOnce);
    peer.assert_silent();
    let mut fresh = fresh.expect("the configuration of the start");
    fresh.sys.interval = Duration::from_millis(100);
    assert!(
        broker
            .reload(&fresh)
            .is_ok_and(|(waiting, _)| waiting.is_empty())
    );
    // The figure is itself a message, so it cannot stay at nothing.
    while peer.message().payload == b"0" {}
    broker.stop();
}

#[test]
fn the_first_connections_after_the_start_do_not_wait_for_the_connect_rate() {
    let (broker, address) = start(1, |config| {
        config.limits.connect_rate = 100;
        config.sys.interval = Duration::from_millis(50);
    });
    let mut peer = Peer::connect(address, "first");
    peer.subscribe("$SYS/broker/limits/connect_rate", QoS::AtMostOnce);
    assert_eq!(peer.message().payload, b"0");
    peer.assert_silent();
    broker.stop();
}
