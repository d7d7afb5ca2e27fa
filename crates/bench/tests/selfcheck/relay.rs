//! The bare relay carries what the scenarios send, with one thread and with several.

use std::net::SocketAddr;

use thrum_bench::Outcome;
use thrum_codec::{QoS, Version};
use thrum_load::scenario::{Overrides, PayloadSpec, Rate, Scenario, find};
use thrum_relay::{Relay, Totals};

use crate::bench::{
    SECOND, VERSIONS, assert_flawless, at_once, group, ms, pairs, reconnect_after, run_against,
};
use crate::faults::cut;

const THREADS: [u16; 2] = [1, 2];
/// The connection by which a run finds out that its broker is there.
const PROBE: u64 = 1;

/// Runs a scenario against a relay of its own.
fn relayed(threads: u16, scenario: Scenario) -> (Outcome, Totals) {
    let relay = Relay::start(SocketAddr::from(([127, 0, 0, 1], 0)), threads).unwrap();
    let outcome = run_against(relay.address(), scenario);
    (outcome, relay.stop().unwrap())
}

/// Publishers and subscribers of a scenario of the catalogue, 20 messages of each publisher within
/// a second.
fn short(name: &str, publishers: u32, subscribers: u32) -> Scenario {
    let overrides = Overrides {
        publishers: Some(publishers),
        subscribers: Some(subscribers),
        rate: Some(Rate::per_second(20)),
        warm_up: Some(ms(0)),
        hold: Some(SECOND),
        drain: Some(20 * SECOND),
        ..Overrides::default()
    };
    find(name).unwrap().with(&overrides).unwrap()
}

fn pairs_of(version: Version, qos: QoS) -> Scenario {
    let mut scenario = pairs(20, 50, SECOND);
    scenario.version = version;
    for group in &mut scenario.groups {
        if let Some(publish) = &mut group.publish {
            publish.qos = qos;
        }
        if let Some(subscribe) = &mut group.subscribe {
            subscribe.qos = qos;
        }
    }
    scenario
}

#[test]
fn pairs_get_every_message_once_in_each_quality_of_service_and_version() {
    at_once(&THREADS, |threads| {
        at_once(&VERSIONS, |version| {
            let all = [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce];
            at_once(&all, |qos| {
                let (outcome, totals) = relayed(threads, pairs_of(version, qos));
                assert_flawless(&outcome);
                assert_eq!(outcome.delivery.expected, 1_000);
                let acknowledged = 1_000 * u64::from(qos > QoS::AtMostOnce);
                assert_eq!(outcome.counts.acknowledged, acknowledged);
                assert_eq!(totals.connections, PROBE + 40);
                assert_eq!((totals.messages_in, totals.messages_out), (1_000, 1_000));
                assert_eq!((totals.dropped, totals.broken, totals.refused), (0, 0, 0));
                // PUBACK once, or PUBREC and PUBCOMP.
                assert_eq!(totals.acknowledged, 1_000 * u64::from(qos.as_u8()));
            });
        });
    });
}

#[test]
fn a_subscriber_of_five_topics_gets_all_of_them() {
    at_once(&THREADS, |threads| {
        let (outcome, totals) = relayed(threads, short("fanout-5-1000-5-250K", 5, 50));
        assert_flawless(&outcome);
        assert_eq!(outcome.delivery.expected, 5_000);
        assert_eq!((totals.messages_in, totals.messages_out), (100, 5_000));
        assert_eq!(totals.dropped, 0);
    });
}

#[test]
fn members_of_a_shared_subscription_take_turns() {
    at_once(&THREADS, |threads| {
        let (outcome, totals) = relayed(threads, short("sharedsub-1K-5", 40, 5));
        assert_flawless(&outcome);
        assert_eq!(outcome.delivery.expected, 800);
        assert_eq!((totals.messages_in, totals.messages_out), (800, 800));
    });
}

#[test]
fn messages_longer_than_a_read_and_a_socket_come_whole() {
    at_once(&THREADS, |threads| {
        let mut scenario = short("fanout-1-1K", 2, 4);
        let publish = group(&mut scenario, "publishers").publish.as_mut().unwrap();
        publish.payload = PayloadSpec::Size(1_000_000);
        // All of a subscriber's fit into its queue of 8 MiB, however late it reads.
        publish.rate = Rate::per_second(4);
        let (outcome, totals) = relayed(threads, scenario);
        assert_flawless(&outcome);
        assert_eq!(outcome.delivery.expected, 32);
        assert_eq!((totals.messages_in, totals.messages_out), (8, 32));
    });
}

#[test]
fn subscribers_that_reconnect_get_their_messages_again() {
    at_once(&THREADS, |threads| {
        let mut scenario = pairs(20, 100, SECOND);
        reconnect_after(&mut scenario, ms(50));
        for at_ms in [200, 500] {
            cut(&mut scenario, "subscribers", at_ms, at_ms == 500);
        }
        scenario.stages.drain = ms(500);
        let (outcome, totals) = relayed(threads, scenario);
        assert_eq!(outcome.faults, []);
        assert_eq!(
            (outcome.delivery.lost, outcome.delivery.wrong.misdelivered),
            (0, 0)
        );
        assert_eq!(outcome.counts.reconnected, 40);
        assert_eq!(totals.connections, PROBE + 80);
        assert_eq!((totals.messages_in, totals.dropped), (2_000, 0));
    });
}
