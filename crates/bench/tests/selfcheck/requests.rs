//! Requests and answers: both legs are in the ledger, and the latency is the round trip.

use thrum_codec::{QoS, ReasonCode, Version};
use thrum_load::mark::Mark;
use thrum_load::scenario::{Scenario, SubscribeSpec};

use crate::bench::{
    SECOND, VERSIONS, assert_flawless, at_once, count_from, group, ms, pairs, real_broker,
    reconnect_after, run_against,
};
use crate::fake_broker::{FakeBroker, Fate};
use crate::faults::cut;

/// Six clients that ask twenty times a second, and others that answer.
pub(crate) fn requests(version: Version, qos: QoS, responders: u32, filter: &str) -> Scenario {
    let mut scenario = pairs(6, 20, SECOND);
    scenario.version = version;
    let publish = group(&mut scenario, "publishers").publish.as_mut().unwrap();
    publish.topic = String::from("request/{i}");
    publish.response = Some("answer/{i}".to_owned());
    publish.qos = qos;
    let responding = group(&mut scenario, "subscribers");
    responding.clients = responders;
    responding.subscribe = Some(SubscribeSpec {
        filters: vec![filter.to_owned()],
        qos,
        respond: true,
        strip_prefix: None,
    });
    scenario
}

#[test]
fn every_request_is_answered_once_by_a_shared_responder() {
    let qualities = [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce];
    at_once(&VERSIONS, |version| {
        at_once(&qualities, |qos| {
            let (broker, address) = real_broker();
            let scenario = requests(version, qos, 3, "$share/responders/request/+");
            let outcome = run_against(address, scenario);
            broker.stop();
            assert_flawless(&outcome);
            // Each request is delivered to a responder and its answer to the client that asked.
            assert_eq!((outcome.counts.sent, outcome.delivery.expected), (120, 240));
            // The way to the responder is a part of the answer's: nothing is missing.
            let e2e = outcome.result.latency_ns.e2e.as_ref();
            assert_eq!(e2e.map(|e2e| e2e.missing), Some(0));
            assert_eq!(
                (outcome.counts.received, outcome.result.errors.len()),
                (240, 0)
            );
            assert_eq!(outcome.latencies.response.len(), 120);
        });
    });
}

/// Some messages are overtaken by the next one.
fn overtaken(mark: Mark) -> Fate {
    if mark.sequence % 5 == 1 {
        Fate::Delay
    } else {
        Fate::Deliver
    }
}

#[test]
fn answers_have_an_order_unless_members_of_a_shared_group_give_them() {
    let cases = [
        ("request/{i}", 6, true),
        ("$share/responders/request/+", 3, false),
    ];
    at_once(&cases, |(filter, responders, has_order)| {
        let broker = FakeBroker::start(ReasonCode::Success, overtaken);
        let scenario = requests(Version::V311, QoS::AtLeastOnce, responders, filter);
        let outcome = run_against(broker.address, scenario);
        let is_counted = outcome.delivery.reordered > 0;
        assert_eq!(is_counted, has_order, "{:?}", outcome.faults);
        assert_eq!(outcome.delivery.lost, 0);
    });
}

/// The way there and the way back take 150 ms each.
fn slow_both_ways(_: Mark) -> Fate {
    Fate::After(ms(150))
}

#[test]
fn latency_is_that_of_the_round_trip() {
    let broker = FakeBroker::start(ReasonCode::Success, slow_both_ways);
    let scenario = requests(Version::V311, QoS::AtLeastOnce, 6, "request/{i}");
    let outcome = run_against(broker.address, scenario);
    assert_flawless(&outcome);
    assert_eq!(outcome.delivery.expected, 240);
    for histogram in [&outcome.latencies.response, &outcome.latencies.service] {
        assert_eq!(
            (histogram.len(), count_from(histogram, ms(299))),
            (120, 120)
        );
    }
}

#[test]
fn requests_missed_by_an_absent_responder_are_excused_on_both_legs() {
    at_once(&["$share/responders/request/+", "request/{i}"], |filter| {
        let (broker, address) = real_broker();
        let mut scenario = requests(Version::V5, QoS::AtLeastOnce, 6, filter);
        scenario.stages.drain = ms(500);
        reconnect_after(&mut scenario, ms(200));
        cut(&mut scenario, "subscribers", 400, true);
        let outcome = run_against(address, scenario);
        broker.stop();
        let delivery = &outcome.delivery;
        assert_eq!((delivery.expected, delivery.lost), (240, 0));
        // About 24 requests were due meanwhile.
        assert!((20..=160).contains(&delivery.excused), "{delivery:?}");
        assert_eq!(outcome.faults, []);
    });
}

/// Requests and answers have the same marks, so both are lost.
fn one_lost(mark: Mark) -> Fate {
    match (mark.publisher, mark.sequence) {
        (2, 7) => Fate::Lose,
        _ => Fate::Deliver,
    }
}

#[test]
fn a_lost_request_is_missing_on_both_legs() {
    let broker = FakeBroker::start(ReasonCode::Success, one_lost);
    let mut scenario = requests(Version::V5, QoS::AtLeastOnce, 6, "request/{i}");
    scenario.stages.drain = ms(300);
    let outcome = run_against(broker.address, scenario);
    assert_eq!((outcome.delivery.expected, outcome.delivery.lost), (240, 2));
    assert_eq!(outcome.latencies.response.len(), 119);
}
