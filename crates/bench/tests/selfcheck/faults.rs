//! Faults of a scenario: exact counts of promised and of excused messages.

use thrum_codec::{QoS, ReasonCode, Version};
use thrum_load::mark::Mark;
use thrum_load::scenario::{Fault, FaultKind, PayloadSpec, Scenario, Victims};

use crate::bench::{
    SECOND, VERSIONS, assert_flawless, at_once, count_from, group, lawful, ms, pairs, real_broker,
    reconnect_after, run_against,
};
use crate::fake_broker::{FakeBroker, Fate, Laws, Stall};

pub(crate) fn all_of(group: &str) -> Victims {
    Victims {
        group: Some(group.to_owned()),
        share: 1.0,
    }
}

/// Connections of a group are closed, this many milliseconds into the hold.
pub(crate) fn cut(scenario: &mut Scenario, group: &str, at_ms: u64, reset: bool) {
    let victims = all_of(group);
    scenario.faults.push(Fault {
        at: ms(at_ms),
        lasts: ms(0),
        kind: FaultKind::Disconnect { victims, reset },
    });
}

#[test]
fn messages_missed_by_absent_clean_sessions_are_excused() {
    let broker = FakeBroker::start(ReasonCode::Success, lawful);
    let mut scenario = pairs(5, 100, SECOND);
    reconnect_after(&mut scenario, ms(200));
    cut(&mut scenario, "subscribers", 400, false);
    scenario.stages.drain = ms(500);
    let outcome = run_against(broker.address, scenario);
    let delivery = &outcome.delivery;
    assert_eq!((delivery.expected, delivery.lost), (500, 0));
    // They were disconnected for 200 ms and the time of connecting.
    assert!((80..=300).contains(&delivery.excused), "{delivery:?}");
    assert_eq!(outcome.latencies.response.len(), 500 - delivery.excused);
    assert_eq!(outcome.faults, []);
    assert_eq!(outcome.counts.connections_cut, 5);
    assert_eq!(
        (outcome.counts.reconnected, outcome.counts.connections_lost),
        (5, 0)
    );
    assert_eq!(outcome.latencies.reconnect.len(), 5);
    assert!(outcome.latencies.reconnect.min() >= 199_000_000);
    // Connecting again is no part of the ramp.
    assert_eq!(
        (
            outcome.latencies.connect.len(),
            outcome.latencies.subscribe.len()
        ),
        (10, 5)
    );
}

/// The fourth message of each publisher is lost.
fn the_fourth_is_lost(mark: Mark) -> Fate {
    if mark.sequence == 3 {
        Fate::Lose
    } else {
        Fate::Deliver
    }
}

#[test]
fn a_message_lost_long_before_an_absence_is_not_excused_by_it() {
    let broker = FakeBroker::start(ReasonCode::Success, the_fourth_is_lost);
    let mut scenario = pairs(5, 100, SECOND);
    reconnect_after(&mut scenario, ms(200));
    cut(&mut scenario, "subscribers", 400, false);
    scenario.stages.drain = ms(500);
    let outcome = run_against(broker.address, scenario);
    assert_eq!(outcome.delivery.lost, 5, "{:?}", outcome.delivery);
    assert_eq!(outcome.faults, [thrum_load::verdict::Fault::Lost(5)]);
}

#[test]
fn a_part_of_the_subscribers_is_away_alone() {
    let broker = FakeBroker::start(ReasonCode::Success, lawful);
    let mut scenario = pairs(10, 50, SECOND);
    scenario.stages.drain = ms(500);
    reconnect_after(&mut scenario, ms(200));
    let victims = Victims {
        group: Some("subscribers".to_owned()),
        share: 0.3,
    };
    let kind = FaultKind::Disconnect {
        victims,
        reset: true,
    };
    scenario.faults.push(Fault {
        at: ms(400),
        lasts: ms(0),
        kind,
    });
    let outcome = run_against(broker.address, scenario);
    assert_eq!((outcome.delivery.expected, outcome.delivery.lost), (500, 0));
    assert!(
        (20..=90).contains(&outcome.delivery.excused),
        "{:?}",
        outcome.delivery
    );
    assert_eq!(
        (
            outcome.counts.connections_cut,
            outcome.latencies.reconnect.len()
        ),
        (3, 3)
    );
    assert_eq!(outcome.faults, []);
}

#[test]
fn messages_missed_by_permanently_cut_subscribers_are_excused() {
    let broker = FakeBroker::start(ReasonCode::Success, lawful);
    let mut scenario = pairs(5, 100, SECOND);
    scenario.stages.drain = ms(300);
    cut(&mut scenario, "subscribers", 500, false);
    let outcome = run_against(broker.address, scenario);
    let delivery = &outcome.delivery;
    assert_eq!((delivery.expected, delivery.lost), (500, 0));
    assert!((200..=260).contains(&delivery.excused), "{delivery:?}");
    assert_eq!(outcome.faults, []);
    assert_eq!(
        (outcome.counts.connections_cut, outcome.counts.reconnected),
        (5, 0)
    );
}

#[test]
fn a_shared_group_without_one_of_its_members_gets_everything() {
    let (broker, address) = real_broker();
    let mut scenario = pairs(4, 100, SECOND);
    group(&mut scenario, "publishers")
        .publish
        .as_mut()
        .unwrap()
        .topic = "job/{i}".to_owned();
    let subscribers = group(&mut scenario, "subscribers");
    subscribers.subscribe.as_mut().unwrap().filters = vec!["$share/workers/job/+".to_owned()];
    let victims = Victims {
        group: Some("subscribers".to_owned()),
        share: 0.5,
    };
    let kind = FaultKind::Disconnect {
        victims,
        reset: false,
    };
    scenario.faults.push(Fault {
        at: ms(500),
        lasts: ms(0),
        kind,
    });
    scenario.stages.drain = ms(500);
    let outcome = run_against(address, scenario);
    broker.stop();
    let delivery = &outcome.delivery;
    assert_eq!((delivery.expected, delivery.lost), (400, 0));
    // Messages in flight to the cut clients; they cannot be asked.
    assert!(delivery.excused <= 40, "{delivery:?}");
    assert_eq!(outcome.counts.connections_cut, 2);
    assert_eq!(outcome.faults, []);
}

#[test]
fn publishers_that_reconnect_catch_up() {
    at_once(&[false, true], |reset| {
        let broker = FakeBroker::start(ReasonCode::Success, lawful);
        let mut scenario = pairs(5, 100, SECOND);
        scenario.stages.drain = ms(1_000);
        reconnect_after(&mut scenario, ms(300));
        cut(&mut scenario, "publishers", 300, reset);
        let outcome = run_against(broker.address, scenario);
        let delivery = &outcome.delivery;
        assert_eq!(outcome.counts.sent, 500);
        assert_eq!((delivery.expected, delivery.lost), (500, 0));
        // At most what was on its way when the connections ended.
        assert!(delivery.excused <= 25, "{delivery:?}");
        assert_eq!((delivery.duplicated, delivery.reordered), (0, 0));
        assert!(
            (140..=400).contains(&outcome.counts.held_back),
            "{}",
            outcome.counts.held_back
        );
        // The first of them was due 300 ms before it could leave.
        assert!(count_from(&outcome.latencies.response, ms(150)) >= 60);
        assert_eq!(outcome.faults, []);
        assert_eq!(outcome.latencies.reconnect.len(), 5);
    });
}

/// The broker ends a connection in the middle of what it has to answer.
fn the_thirtieth_disconnects(mark: Mark) -> Fate {
    match mark.sequence {
        30 => Fate::Disconnect,
        _ => Fate::Deliver,
    }
}

#[test]
fn nothing_of_an_old_connection_goes_into_the_new_one() {
    let broker = FakeBroker::with(Laws {
        connack: ReasonCode::Success,
        fate: the_thirtieth_disconnects,
        granted: QoS::ExactlyOnce,
        // All of ten messages are answered at once, the last one with the end of the connection.
        stall: Some(Stall {
            from_ms: 200,
            for_ms: 200,
        }),
    });
    let mut scenario = pairs(20, 100, SECOND);
    scenario.stages.drain = ms(500);
    scenario.version = Version::V5;
    reconnect_after(&mut scenario, ms(0));
    for group in &mut scenario.groups {
        if let Some(publish) = &mut group.publish {
            publish.qos = QoS::ExactlyOnce;
        }
    }
    let outcome = run_against(broker.address, scenario);
    // A write may find the connection closed before the DISCONNECT is read. A new connection that
    // begins with bytes of an old one would be another error.
    let errors = &outcome.result.errors;
    let ended = errors.iter().map(|error| error.count).sum::<u64>();
    assert_eq!(ended, 20, "{errors:?}");
    let mut reasons = errors.iter().map(|error| error.reason.as_str());
    assert!(
        reasons.all(|reason| reason.contains("by the broker")),
        "{errors:?}"
    );
    assert_eq!(outcome.counts.reconnected, 20);
    assert_eq!(
        (outcome.delivery.expected, outcome.delivery.lost),
        (2_000, 0)
    );
}

#[test]
fn clients_that_are_cut_repeatedly_reconnect_each_time() {
    let (broker, address) = real_broker();
    let mut scenario = pairs(20, 200, SECOND);
    scenario.stages.drain = ms(1_000);
    reconnect_after(&mut scenario, ms(0));
    for at_ms in (100..900).step_by(40) {
        cut(&mut scenario, "subscribers", at_ms, false);
        cut(&mut scenario, "publishers", at_ms + 20, true);
    }
    let outcome = run_against(address, scenario);
    broker.stop();
    assert_eq!(outcome.result.errors, []);
    assert_eq!(
        (outcome.delivery.expected, outcome.delivery.lost),
        (4_000, 0)
    );
    assert_eq!(outcome.counts.reconnected, outcome.counts.connections_cut);
    assert_eq!(outcome.faults, []);
}

#[test]
fn subscribers_that_do_not_read_get_everything_later() {
    let (broker, address) = real_broker();
    let mut scenario = pairs(5, 100, SECOND);
    let victims = all_of("subscribers");
    let kind = FaultKind::StopReading { victims };
    scenario.faults.push(Fault {
        at: ms(200),
        lasts: ms(500),
        kind,
    });
    let outcome = run_against(address, scenario);
    broker.stop();
    assert_flawless(&outcome);
    assert_eq!(outcome.delivery.expected, 500);
    // Messages of 300 of the 500 ms waited for 200 ms and longer.
    assert!(count_from(&outcome.latencies.response, ms(200)) >= 140);
    assert!(count_from(&outcome.latencies.publish_ack, ms(400)) < 100);
    assert_eq!(outcome.counts.held_back, 0);
}

#[test]
fn a_slow_reader_reads_at_its_rate_and_everything() {
    let (broker, address) = real_broker();
    let mut scenario = pairs(5, 100, ms(500));
    group(&mut scenario, "subscribers").client.read_rate = Some(5_000);
    group(&mut scenario, "publishers")
        .publish
        .as_mut()
        .unwrap()
        .payload = PayloadSpec::Size(100);
    let outcome = run_against(address, scenario);
    broker.stop();
    assert_flawless(&outcome);
    assert_eq!(outcome.delivery.expected, 250);
    // 50 messages of more than 100 bytes each take a second and more, half a second of which is the
    // hold.
    assert!(outcome.latencies.response.max() >= 500_000_000);
    assert_eq!(count_from(&outcome.latencies.publish_ack, ms(400)), 0);
}

#[test]
fn frozen_clients_continue_where_they_were() {
    let (broker, address) = real_broker();
    let mut scenario = pairs(5, 100, SECOND);
    let victims = Victims {
        group: None,
        share: 1.0,
    };
    let kind = FaultKind::Freeze { victims };
    scenario.faults.push(Fault {
        at: ms(200),
        lasts: ms(500),
        kind,
    });
    let outcome = run_against(address, scenario);
    broker.stop();
    assert_flawless(&outcome);
    assert_eq!(outcome.delivery.expected, 500);
    assert!(
        outcome.counts.held_back >= 240,
        "{}",
        outcome.counts.held_back
    );
    assert!(count_from(&outcome.latencies.response, ms(200)) >= 140);
}

/// The broker ends the connection of a client that is silent for one and a half times its keep
/// alive.
#[test]
fn a_frozen_client_that_the_broker_dropped_reconnects_when_it_thaws() {
    at_once(&VERSIONS, |version| {
        let (broker, address) = real_broker();
        let mut scenario = pairs(5, 100, ms(2_050));
        scenario.version = version;
        reconnect_after(&mut scenario, ms(10));
        group(&mut scenario, "subscribers").client.keep_alive = Some(1);
        let victims = all_of("subscribers");
        let kind = FaultKind::Freeze { victims };
        scenario.faults.push(Fault {
            at: ms(0),
            lasts: ms(1_900),
            kind,
        });
        scenario.stages.drain = ms(200);
        let outcome = run_against(address, scenario);
        broker.stop();
        assert_eq!(outcome.counts.reconnected, 5);
        assert_eq!(outcome.delivery.lost, 0, "{:?}", outcome.delivery);
        assert_eq!(outcome.faults, []);
    });
}
