//! A broker that changes messages on their way does not pass, whatever it changes and however the
//! messages travel.

use thrum_bench::Outcome;
use thrum_codec::{QoS, ReasonCode, Version};
use thrum_load::mark::Mark;
use thrum_load::scenario::{PayloadSpec, Scenario};
use thrum_load::verdict::Fault;

use crate::bench::{assert_flawless, at_once, group, lawful, ms, pairs, real_broker, run_against};
use crate::fake_broker::{Change, FakeBroker, Fate, Law, Laws};
use crate::requests::requests;

/// A law, and the fault that it has to lead to.
type Cheat = (Law, fn(u64) -> Fault);

/// Cheats on messages of 1000 bytes with QoS 2.
const CHEATS: [Cheat; 6] = [
    (
        |mark| every_fourth(mark, Change::Qos(QoS::AtMostOnce)),
        Fault::WrongQos,
    ),
    (|mark| every_fourth(mark, Change::Topic), Fault::WrongTopic),
    (
        |mark| every_fourth(mark, Change::Retain),
        Fault::WrongRetain,
    ),
    (
        |mark| every_fourth(mark, Change::Cut(16)),
        Fault::WrongPayload,
    ),
    (
        |mark| every_fourth(mark, Change::Byte(16)),
        Fault::WrongPayload,
    ),
    (
        |mark| every_fourth(mark, Change::Byte(999)),
        Fault::WrongPayload,
    ),
];

fn every_fourth(mark: Mark, change: Change) -> Fate {
    if mark.sequence % 4 == 1 {
        Fate::Alter(change)
    } else {
        Fate::Deliver
    }
}

/// All messages of a scenario have this payload and this quality of service on both sides.
fn with(mut scenario: Scenario, payload: &PayloadSpec, qos: QoS) -> Scenario {
    for group in &mut scenario.groups {
        if let Some(publish) = &mut group.publish {
            publish.payload = payload.clone();
            publish.qos = qos;
        }
        if let Some(subscribe) = &mut group.subscribe {
            subscribe.qos = qos;
        }
    }
    scenario
}

/// Four pairs; each publisher sends ten messages, of which a cheat concerns three.
fn four_pairs(payload: &PayloadSpec, qos: QoS) -> Scenario {
    with(pairs(4, 20, ms(500)), payload, qos)
}

fn run_with(law: Law, granted: QoS, scenario: Scenario) -> Outcome {
    let broker = FakeBroker::with(Laws {
        connack: ReasonCode::Success,
        fate: law,
        granted,
        stall: None,
    });
    run_against(broker.address, scenario)
}

/// The cheat is the only fault, and everything else of the messages is as it should be.
#[track_caller]
fn assert_found(law: Law, fault: Fault, scenario: Scenario) {
    let outcome = run_with(law, QoS::ExactlyOnce, scenario);
    assert_eq!(outcome.faults, [fault], "{:?}", outcome.delivery);
    assert_eq!(outcome.delivery.lost, 0);
    assert!(!outcome.result.verdict.pass);
    assert_ne!(outcome.exit_code(), 0);
    let found = [
        outcome.result.delivery.wrong_qos,
        outcome.result.delivery.wrong_topic,
        outcome.result.delivery.wrong_retain,
        outcome.result.delivery.wrong_payload,
    ];
    assert_eq!(found.iter().filter(|count| **count > 0).count(), 1);
}

#[test]
fn every_cheat_on_pairs_is_found() {
    let scenario = four_pairs(&PayloadSpec::Size(1_000), QoS::ExactlyOnce);
    at_once(&CHEATS, |(law, fault)| {
        assert_found(law, fault(12), scenario.clone());
    });
    assert_flawless(&run_with(lawful, QoS::ExactlyOnce, scenario));
}

#[test]
fn every_cheat_on_a_shared_subscription_is_found() {
    let mut scenario = four_pairs(&PayloadSpec::Random(1_000), QoS::ExactlyOnce);
    let subscribe = group(&mut scenario, "subscribers").subscribe.as_mut();
    subscribe.unwrap().filters = vec!["$share/g/shared/+".to_owned()];
    let publish = group(&mut scenario, "publishers").publish.as_mut();
    publish.unwrap().topic = "shared/{i}".to_owned();
    at_once(&CHEATS, |(law, fault)| {
        assert_found(law, fault(12), scenario.clone());
    });
    assert_flawless(&run_with(lawful, QoS::ExactlyOnce, scenario));
}

#[test]
fn every_cheat_on_requests_and_answers_is_found_on_both_legs() {
    let responders = [(6, "request/{i}"), (3, "$share/responders/request/+")];
    at_once(&responders, |(responders, filter)| {
        let scenario = requests(Version::V5, QoS::ExactlyOnce, responders, filter);
        let scenario = with(scenario, &PayloadSpec::Size(1_000), QoS::ExactlyOnce);
        at_once(&CHEATS, |(law, fault)| {
            assert_found(law, fault(60), scenario.clone());
        });
        assert_flawless(&run_with(lawful, QoS::ExactlyOnce, scenario));
    });
}

#[test]
fn a_changed_text_is_found_whatever_its_places_are_filled_with() {
    let texts = [
        "at {now} {random:64} {uuid} {float:-1:1}",
        r#"{"seq":{seq},"at":"{now}","ms":{now_ms},"hex":"{random:64}"}"#,
    ];
    let cheats: [Cheat; 5] = [
        (
            |mark| every_fourth(mark, Change::Cut(60)),
            Fault::WrongPayload,
        ),
        // In the checksum, behind it, and in a place.
        (
            |mark| every_fourth(mark, Change::Byte(42)),
            Fault::WrongPayload,
        ),
        (
            |mark| every_fourth(mark, Change::Byte(52)),
            Fault::WrongPayload,
        ),
        (
            |mark| every_fourth(mark, Change::Byte(100)),
            Fault::WrongPayload,
        ),
        (
            |mark| every_fourth(mark, Change::Qos(QoS::AtMostOnce)),
            Fault::WrongQos,
        ),
    ];
    at_once(&texts, |text| {
        let payload = PayloadSpec::Template(text.to_owned());
        let scenario = four_pairs(&payload, QoS::AtLeastOnce);
        at_once(&cheats, |(law, fault)| {
            assert_found(law, fault(12), scenario.clone());
        });
        assert_flawless(&run_with(lawful, QoS::ExactlyOnce, scenario));
    });
}

/// A byte in each part of a mark, in binary and in digits.
const IN_MARK: [Law; 5] = [
    |mark| every_fourth(mark, Change::Byte(0)),
    |mark| every_fourth(mark, Change::Byte(3)),
    |mark| every_fourth(mark, Change::Byte(6)),
    |mark| every_fourth(mark, Change::Byte(9)),
    |mark| every_fourth(mark, Change::Byte(14)),
];

#[test]
fn a_changed_mark_is_an_altered_payload_and_nothing_else_but_a_loss() {
    let texts = ["at {now}", r#"{"seq":{seq}}"#];
    let texts = texts.map(|text| PayloadSpec::Template(text.to_owned()));
    let sizes = [PayloadSpec::Size(16), PayloadSpec::Random(300)];
    at_once(&[texts, sizes].concat(), |payload| {
        at_once(&IN_MARK, |law| {
            let scenario = four_pairs(&payload, QoS::ExactlyOnce);
            let outcome = run_with(law, QoS::ExactlyOnce, scenario);
            let wrong = outcome.delivery.wrong;
            assert_eq!(
                (wrong.payload, wrong.foreign, wrong.misdelivered),
                (12, 0, 0)
            );
            // What was published never arrived.
            assert_eq!(outcome.faults, [Fault::Lost(12), Fault::WrongPayload(12)]);
            // No loss counts at QoS 0.
            let scenario = four_pairs(&payload, QoS::AtMostOnce);
            let outcome = run_with(law, QoS::ExactlyOnce, scenario);
            assert_eq!(outcome.faults, [Fault::WrongPayload(12)]);
        });
    });
}

fn all_at_most_once(_: Mark) -> Fate {
    Fate::Alter(Change::Qos(QoS::AtMostOnce))
}

#[test]
fn a_subscriber_that_is_granted_less_gets_exactly_what_it_was_granted() {
    let scenario = four_pairs(&PayloadSpec::Size(16), QoS::ExactlyOnce);
    let honest: [(Law, QoS); 3] = [
        (lawful, QoS::AtLeastOnce),
        (lawful, QoS::AtMostOnce),
        (all_at_most_once, QoS::AtMostOnce),
    ];
    at_once(&honest, |(law, granted)| {
        let outcome = run_with(law, granted, scenario.clone());
        assert_flawless(&outcome);
        assert_eq!(outcome.counts.downgraded, 4);
    });
    let outcome = run_with(all_at_most_once, QoS::AtLeastOnce, scenario);
    assert_eq!(outcome.faults, [Fault::WrongQos(40)]);
}

#[test]
fn a_higher_quality_of_service_than_published_is_wrong_too() {
    let mut scenario = four_pairs(&PayloadSpec::Size(16), QoS::ExactlyOnce);
    let publish = group(&mut scenario, "publishers").publish.as_mut();
    publish.unwrap().qos = QoS::AtLeastOnce;
    let law: Law = |mark| every_fourth(mark, Change::Qos(QoS::ExactlyOnce));
    assert_found(law, Fault::WrongQos(12), scenario);
}

#[test]
fn messages_published_as_retained_may_have_the_flag_or_not() {
    let mut scenario = four_pairs(&PayloadSpec::Size(16), QoS::AtLeastOnce);
    let publish = group(&mut scenario, "publishers").publish.as_mut();
    publish.unwrap().retain = true;
    let laws: [Law; 2] = [lawful, |mark| every_fourth(mark, Change::Retain)];
    at_once(&laws, |law| {
        assert_flawless(&run_with(law, QoS::ExactlyOnce, scenario.clone()));
    });
    let (broker, address) = real_broker();
    assert_flawless(&run_against(address, scenario));
    broker.stop();
}

#[test]
fn a_message_that_arrives_again_is_compared_too() {
    let scenario = four_pairs(&PayloadSpec::Size(100), QoS::AtLeastOnce);
    let law: Law = |mark| match mark.sequence % 4 {
        1 => Fate::DoubleAltered(Change::Byte(50)),
        _ => Fate::Deliver,
    };
    let outcome = run_with(law, QoS::ExactlyOnce, scenario);
    assert_eq!(outcome.delivery.duplicated, 12);
    assert_eq!(outcome.faults, [Fault::WrongPayload(12)]);
}
