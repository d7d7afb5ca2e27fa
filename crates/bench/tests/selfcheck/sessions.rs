//! Durable sessions over cut connections: nothing is lost and nothing is excused.

use thrum_bench::Outcome;
use thrum_codec::{QoS, Version};
use thrum_load::scenario::Scenario;

use crate::bench::{
    SECOND, VERSIONS, at_once, ms, pairs, real_broker, reconnect_after, run_against,
};
use crate::faults::cut;

/// Twenty pairs that keep their sessions for a minute.
fn durable_pairs(version: Version, qos: QoS) -> Scenario {
    let mut scenario = pairs(20, 100, SECOND);
    scenario.version = version;
    reconnect_after(&mut scenario, ms(30));
    for group in &mut scenario.groups {
        group.client.session_expiry = Some(60 * SECOND);
        if let Some(publish) = &mut group.publish {
            publish.qos = qos;
        }
        if let Some(subscribe) = &mut group.subscribe {
            subscribe.qos = qos;
        }
    }
    scenario
}

#[track_caller]
fn assert_nothing_missing(outcome: &Outcome, cuts: u64) {
    let delivery = &outcome.delivery;
    assert_eq!(delivery.expected, 2_000);
    assert_eq!((delivery.lost, delivery.excused), (0, 0), "{delivery:?}");
    assert_eq!(
        (
            delivery.reordered,
            delivery.wrong.misdelivered,
            delivery.wrong.foreign
        ),
        (0, 0, 0)
    );
    assert_eq!(outcome.faults, []);
    assert_eq!(outcome.counts.connections_cut, cuts);
    assert_eq!(outcome.counts.reconnected, cuts);
    assert_eq!(outcome.counts.acknowledged, 2_000);
    assert_eq!(outcome.result.errors, []);
}

#[test]
fn subscribers_with_sessions_miss_nothing() {
    at_once(&VERSIONS, |version| {
        let (broker, address) = real_broker();
        let mut scenario = durable_pairs(version, QoS::AtLeastOnce);
        cut(&mut scenario, "subscribers", 200, false);
        cut(&mut scenario, "subscribers", 500, true);
        assert_nothing_missing(&run_against(address, scenario), 40);
        broker.stop();
    });
}

#[test]
fn publishers_with_sessions_resend_unacknowledged_messages_in_order() {
    at_once(&VERSIONS, |version| {
        let (broker, address) = real_broker();
        let mut scenario = durable_pairs(version, QoS::AtLeastOnce);
        for at_ms in [150, 350, 550, 750] {
            cut(&mut scenario, "publishers", at_ms, at_ms % 100 == 50);
        }
        assert_nothing_missing(&run_against(address, scenario), 80);
        broker.stop();
    });
}

#[test]
fn exactly_once_stays_exactly_once() {
    at_once(&VERSIONS, |version| {
        let (broker, address) = real_broker();
        let mut scenario = durable_pairs(version, QoS::ExactlyOnce);
        cut(&mut scenario, "publishers", 200, true);
        cut(&mut scenario, "subscribers", 350, true);
        cut(&mut scenario, "publishers", 500, false);
        cut(&mut scenario, "subscribers", 650, false);
        let outcome = run_against(address, scenario);
        assert_nothing_missing(&outcome, 80);
        assert_eq!(outcome.delivery.duplicated, 0);
        broker.stop();
    });
}
