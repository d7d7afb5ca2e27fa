//! All kinds of messages go through the ledger alike, and foreign messages are not counted.

use std::time::Duration;

use thrum_bench::run;
use thrum_codec::QoS;
use thrum_load::scenario::{Overrides, PayloadSpec, Rate, Scenario, find};

use crate::bench::{
    NoObserver, SECOND, VERSIONS, assert_flawless, at_once, group, ms, options, pairs, real_broker,
    run_against,
};

fn messages(payload: PayloadSpec, qos: QoS) -> Scenario {
    let mut scenario = pairs(5, 40, ms(500));
    group(&mut scenario, "subscribers")
        .subscribe
        .as_mut()
        .unwrap()
        .qos = qos;
    let publish = group(&mut scenario, "publishers").publish.as_mut().unwrap();
    publish.payload = payload;
    publish.qos = qos;
    publish.user_properties = vec![
        ("unit".to_owned(), "°C".to_owned()),
        ("unit".to_owned(), String::new()),
    ];
    publish.expiry = Some(60);
    scenario
}

#[test]
fn all_payloads_are_recognised_in_every_quality_of_service_and_version() {
    let json =
        r#"{"sensor":"{uuid}","n":{seq},"of":"{i}","at":"{now}","value":{float:-10.0:40.0}}"#;
    let text = "reading {seq} of {i}: {int:1:6} {random:64}";
    let cases = [
        (PayloadSpec::Template(json.to_owned()), QoS::AtLeastOnce),
        (PayloadSpec::Template(text.to_owned()), QoS::ExactlyOnce),
        (PayloadSpec::Random(300), QoS::AtMostOnce),
        (PayloadSpec::Size(100_000), QoS::AtLeastOnce),
    ];
    at_once(&VERSIONS, |version| {
        at_once(&cases, |(payload, qos)| {
            let (broker, address) = real_broker();
            let mut scenario = messages(payload.clone(), qos);
            scenario.version = version;
            let outcome = run_against(address, scenario);
            broker.stop();
            assert_flawless(&outcome);
            let received = outcome.latencies.response.len();
            assert_eq!((outcome.delivery.expected, received), (100, 100));
            let acknowledged = if qos == QoS::AtMostOnce { 0 } else { 100 };
            assert_eq!(outcome.counts.acknowledged, acknowledged);
            assert_eq!(outcome.latencies.publish_ack.len(), acknowledged);
            if let PayloadSpec::Size(bytes) | PayloadSpec::Random(bytes) = payload {
                let bytes = u64::from(bytes);
                let possible = 100 * bytes..101 * bytes + 20_000;
                assert!(possible.contains(&outcome.counts.bytes_out));
            }
        });
    });
}

#[test]
fn retained_messages_of_an_earlier_run_are_foreign() {
    let (broker, address) = real_broker();
    let mut scenario = messages(PayloadSpec::Size(16), QoS::AtLeastOnce);
    scenario.stages.hold = ms(200);
    // The same topics in both runs.
    let subscribers = group(&mut scenario, "subscribers");
    subscribers.subscribe.as_mut().unwrap().filters = vec!["test/{i}".to_owned()];
    let publishers = group(&mut scenario, "publishers");
    publishers.publish.as_mut().unwrap().topic = "test/{i}".to_owned();
    group(&mut scenario, "publishers")
        .publish
        .as_mut()
        .unwrap()
        .retain = true;
    assert_flawless(&run_against(address, scenario.clone()));
    let outcome = run(scenario, &options(address), &mut NoObserver).unwrap();
    broker.stop();
    let delivery = &outcome.delivery;
    // The last one of each topic is delivered to the subscriber of the second run.
    assert_eq!(
        (delivery.expected, delivery.lost, delivery.wrong.foreign),
        (40, 0, 5)
    );
    assert_eq!(
        (
            delivery.duplicated,
            delivery.wrong.misdelivered,
            delivery.late
        ),
        (0, 0, 0)
    );
    assert_eq!(outcome.faults, []);
    assert_eq!(
        (outcome.counts.received, outcome.latencies.response.len()),
        (45, 40)
    );
    let in_seconds: u64 = outcome
        .result
        .series
        .iter()
        .map(|second| second.received)
        .sum();
    assert_eq!(in_seconds, 40);
}

#[test]
fn a_filter_for_each_of_many_publishers_takes_several_packets() {
    let (broker, address) = real_broker();
    // More than the broker accepts in a packet.
    let mut scenario = pairs(320, 1, SECOND);
    let subscribers = group(&mut scenario, "subscribers");
    subscribers.clients = 2;
    subscribers.subscribe.as_mut().unwrap().filters = vec!["test/{run}/{p}".to_owned()];
    let outcome = run_against(address, scenario);
    broker.stop();
    assert_flawless(&outcome);
    assert_eq!((outcome.clients.ready, outcome.clients.failed), (322, 0));
    assert_eq!(outcome.delivery.expected, 2 * outcome.counts.sent);
    assert_eq!(outcome.counts.downgraded, 0);
    // One answer for each client that subscribes, not for each packet.
    assert_eq!(outcome.latencies.subscribe.len(), 2);
}

#[test]
fn two_runs_at_once_have_topics_of_their_own() {
    let (broker, address) = real_broker();
    at_once(&["p2p-1K", "sharedsub-1K-5-1K-1K"], |name| {
        at_once(&[1, 2], |_| {
            let overrides = Overrides {
                publishers: Some(5),
                rate: Some(Rate::per_second(20)),
                warm_up: Some(Duration::ZERO),
                hold: Some(SECOND),
                drain: Some(Duration::from_secs(20)),
                ..Overrides::default()
            };
            let scenario = find(name).unwrap().with(&overrides).unwrap();
            let outcome = run_against(address, scenario);
            assert_flawless(&outcome);
            assert_eq!(outcome.delivery.expected, 100, "{name}");
        });
    });
    broker.stop();
}

#[test]
fn fan_out_over_a_wildcard_expects_every_publisher_once() {
    let (broker, address) = real_broker();
    let mut scenario = pairs(4, 50, SECOND);
    let subscribers = group(&mut scenario, "subscribers");
    subscribers.clients = 3;
    subscribers.subscribe.as_mut().unwrap().filters = vec!["fan/+".to_owned()];
    let publish = group(&mut scenario, "publishers").publish.as_mut().unwrap();
    publish.topic = "fan/{i}".to_owned();
    let outcome = run_against(address, scenario);
    broker.stop();
    assert_flawless(&outcome);
    assert_eq!((outcome.counts.sent, outcome.delivery.expected), (200, 600));
}
