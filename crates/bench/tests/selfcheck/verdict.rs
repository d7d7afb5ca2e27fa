//! A broker that breaks its promises by a known law: the verdict matches the law exactly.

use std::time::Duration;

use thrum_bench::observe::{Command, Observer};
use thrum_bench::{Outcome, RunError, Stage, Status, run};
use thrum_codec::{ReasonCode, Version};
use thrum_load::mark::Mark;
use thrum_load::scenario::{Overrides, Rate, find};
use thrum_load::verdict::Fault;

use crate::bench::{NoObserver, lawful, options};
use crate::fake_broker::{FakeBroker, Fate};

/// Of every ten messages the fourth is lost, the sixth arrives twice, the eighth after the ninth.
fn law(mark: Mark) -> Fate {
    match mark.sequence % 10 {
        3 => Fate::Lose,
        5 => Fate::Double,
        7 => Fate::Delay,
        _ => Fate::Deliver,
    }
}

/// Twenty messages of each publisher within a second.
fn short(publishers: u32, subscribers: u32, version: Version) -> Overrides {
    Overrides {
        publishers: Some(publishers),
        subscribers: Some(subscribers),
        rate: Some(Rate::per_second(20)),
        version: Some(version),
        warm_up: Some(Duration::ZERO),
        hold: Some(Duration::from_secs(1)),
        drain: Some(Duration::from_millis(300)),
        ..Overrides::default()
    }
}

fn run_against(broker: &FakeBroker, scenario: &str, overrides: &Overrides) -> Outcome {
    let scenario = find(scenario).unwrap().with(overrides).unwrap();
    run(scenario, &options(broker.address), &mut NoObserver).unwrap()
}

#[test]
fn losses_duplicates_and_swaps_of_pairs_are_counted_exactly() {
    let broker = FakeBroker::start(ReasonCode::Success, law);
    let outcome = run_against(&broker, "p2p-1K", &short(5, 5, Version::V311));
    let delivery = &outcome.delivery;
    assert_eq!(outcome.counts.sent, 100);
    assert_eq!(outcome.counts.acknowledged, 100);
    assert_eq!((delivery.expected, delivery.lost), (100, 10));
    assert_eq!((delivery.duplicated, delivery.reordered), (10, 10));
    assert_eq!(
        (delivery.wrong.misdelivered, delivery.wrong.foreign),
        (0, 0)
    );
    assert_eq!(outcome.faults, [Fault::Lost(10), Fault::Reordered(10)]);
    // Each message counts once in the latency, however often it arrived.
    assert_eq!(outcome.latencies.response.len(), 90);
    assert_eq!(outcome.latencies.publish_ack.len(), 100);
    assert_eq!(outcome.latencies.subscribe.len(), 5);
    let received: u64 = outcome
        .result
        .series
        .iter()
        .map(|second| second.received)
        .sum();
    assert_eq!(received, 100);
}

#[test]
fn a_message_that_two_members_of_a_group_get_is_a_duplicate() {
    let broker = FakeBroker::start(ReasonCode::Success, law);
    let outcome = run_against(&broker, "sharedsub-1K-5", &short(4, 3, Version::V5));
    let delivery = &outcome.delivery;
    assert_eq!((delivery.expected, delivery.lost), (80, 8));
    assert_eq!((delivery.duplicated, delivery.reordered), (8, 0));
    assert_eq!(outcome.faults, [Fault::Lost(8)]);
}

#[test]
fn fan_out_without_fault_passes_and_ends_with_its_last_message() {
    let broker = FakeBroker::start(ReasonCode::Success, lawful);
    let overrides = Overrides {
        // Far more than the messages need: a run that waits for it would show.
        drain: Some(Duration::from_mins(1)),
        ..short(2, 6, Version::V311)
    };
    let outcome = run_against(&broker, "fanout-5-1000-5-250K", &overrides);
    assert_eq!((outcome.delivery.expected, outcome.delivery.lost), (240, 0));
    assert_eq!(outcome.faults, []);
    assert_eq!((outcome.clients.ready, outcome.clients.failed), (8, 0));
    assert!(outcome.latencies.response.max() >= outcome.latencies.service.min());
}

#[test]
fn a_broker_that_refuses_all_clients_is_named_with_its_reason() {
    let broker = FakeBroker::start(ReasonCode::NotAuthorized, lawful);
    let scenario = find("p2p-1K")
        .unwrap()
        .with(&short(2, 2, Version::V311))
        .unwrap();
    let error = run(scenario, &options(broker.address), &mut NoObserver).unwrap_err();
    assert_eq!(error.exit_code(), 5);
    let RunError::NobodyAccepted { reason, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(reason, "connection refused: NotAuthorized");
}

/// Stops the run after this many deliveries.
struct StopAfter(u64);

impl Observer for StopAfter {
    fn look(&mut self, status: &Status) {
        if status.stage == Stage::Hold && status.progress.distinct >= self.0 {
            self.0 = 0;
        }
    }

    fn next_command(&mut self) -> Option<Command> {
        (self.0 == 0).then(|| {
            self.0 = u64::MAX;
            Command::Stop
        })
    }
}

#[test]
fn an_interrupted_run_is_reported_up_to_there() {
    let broker = FakeBroker::start(ReasonCode::Success, lawful);
    let overrides = Overrides {
        hold: Some(Duration::from_hours(1)),
        ..short(2, 2, Version::V5)
    };
    let scenario = find("p2p-1K").unwrap().with(&overrides).unwrap();
    let outcome = run(scenario, &options(broker.address), &mut StopAfter(10)).unwrap();
    assert!(outcome.was_interrupted);
    assert_eq!(outcome.exit_code(), 130);
    assert!(outcome.hold < Duration::from_mins(1));
    assert!(outcome.delivery.expected >= 10);
    assert_eq!(outcome.delivery.lost, 0);
}
