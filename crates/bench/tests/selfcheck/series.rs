//! The seconds of a run: they add up to its totals, and each belongs to its stage.

use thrum_bench::{Outcome, Stage};
use thrum_codec::ReasonCode;
use thrum_load::mark::Mark;
use thrum_report::result::Second;

use crate::bench::{assert_flawless, lawful, ms, pairs, run_against};
use crate::fake_broker::{FakeBroker, Fate};

fn sum(outcome: &Outcome, of: impl Fn(&Second) -> u64) -> u64 {
    outcome.result.series.iter().map(of).sum()
}

fn span(outcome: &Outcome, stage: Stage) -> f64 {
    let seconds = outcome.result.series.iter();
    let seconds = seconds.filter(|second| second.stage == stage);
    seconds.map(|second| second.span).sum()
}

#[track_caller]
fn assert_sums(outcome: &Outcome) {
    let counts = &outcome.counts;
    assert_eq!(sum(outcome, |second| second.sent), counts.sent);
    assert_eq!(sum(outcome, |second| second.received), counts.received);
    assert_eq!(
        sum(outcome, |second| second.acknowledged),
        counts.acknowledged
    );
    assert_eq!(sum(outcome, |second| second.held_back), counts.held_back);
    assert_eq!(sum(outcome, |second| second.bytes_sent), counts.bytes_out);
    assert_eq!(
        sum(outcome, |second| second.bytes_received),
        counts.bytes_in
    );
    let ready = outcome.clients.ready + counts.reconnected;
    assert_eq!(sum(outcome, |second| second.connected), ready);
    let lost = counts.connections_lost + counts.connections_cut;
    assert_eq!(sum(outcome, |second| second.lost), lost);
    let in_hold = |second: &Second| match (second.stage, second.e2e) {
        (Stage::Hold | Stage::Drain, Some(e2e)) => e2e.count,
        _ => 0,
    };
    assert_eq!(sum(outcome, in_hold), outcome.latencies.response.len());
    // No second begins before the one before it has ended.
    for pair in outcome.result.series.windows(2) {
        assert!(
            (pair[0].at + pair[0].span - pair[1].at).abs() < 1e-6,
            "{pair:?}"
        );
    }
}

#[test]
fn seconds_add_up_to_the_totals_and_are_cut_where_a_stage_begins() {
    let broker = FakeBroker::start(ReasonCode::Success, lawful);
    let mut scenario = pairs(10, 50, ms(1_300));
    scenario.stages.warm_up = ms(300);
    scenario.connect_rate = 40;
    let outcome = run_against(broker.address, scenario);
    assert_flawless(&outcome);
    assert_sums(&outcome);
    assert_eq!(
        (outcome.counts.sent, outcome.latencies.response.len()),
        (800, 650)
    );
    assert_eq!(sum(&outcome, |second| second.offered), 800);
    assert!((span(&outcome, Stage::WarmUp) - 0.3).abs() < 1e-6);
    assert!((span(&outcome, Stage::Hold) - 1.3).abs() < 1e-6);
    let mut stages: Vec<Stage> = outcome
        .result
        .series
        .iter()
        .map(|second| second.stage)
        .collect();
    stages.dedup();
    assert_eq!(
        stages,
        [Stage::Ramp, Stage::WarmUp, Stage::Hold, Stage::Drain]
    );
    for second in &outcome.result.series {
        assert!(second.span <= 1.0 + 1e-9);
        let expected = match second.stage {
            // The ramp takes half a second, and the clients rest for half a second after it.
            Stage::Ramp => continue,
            _ => 20,
        };
        assert_eq!(second.up, expected, "{second:?}");
        let offered: u64 = match second.stage {
            Stage::WarmUp => 150,
            Stage::Hold if second.span > 0.5 => 500,
            Stage::Hold => 150,
            Stage::Ramp | Stage::Drain => 0,
        };
        assert_eq!(second.offered, offered, "{second:?}");
    }
    for second in &outcome.result.series {
        assert!(second.up <= 20, "{second:?}");
    }
}

/// The broker ends connections in the first and in the last second.
fn one_early_one_late(mark: Mark) -> Fate {
    match (mark.publisher, mark.sequence) {
        (0, 5) | (1, 55) => Fate::Disconnect,
        _ => Fate::Deliver,
    }
}

#[test]
fn errors_have_their_first_and_last_second() {
    let broker = FakeBroker::start(ReasonCode::Success, one_early_one_late);
    let mut scenario = pairs(4, 50, ms(1_500));
    scenario.version = thrum_codec::Version::V5;
    scenario.stages.drain = ms(500);
    let outcome = run_against(broker.address, scenario);
    assert_sums(&outcome);
    let [error] = outcome.result.errors.as_slice() else {
        panic!("{:?}", outcome.result.errors)
    };
    assert_eq!(
        error.reason,
        "disconnected by the broker: AdministrativeAction"
    );
    assert_eq!(error.count, 2);
    let hold: Vec<&Second> = outcome
        .result
        .series
        .iter()
        .filter(|second| second.stage == Stage::Hold)
        .collect();
    assert_eq!(hold.len(), 2);
    assert!((error.first_seconds - hold[0].at).abs() < 1e-6, "{error:?}");
    assert!((error.last_seconds - hold[1].at).abs() < 1e-6, "{error:?}");
    assert_eq!((hold[0].lost, hold[1].lost), (1, 1));
    assert_eq!((hold[0].up, hold[1].up), (7, 6));
    // Messages that were due afterwards were not sent.
    assert_eq!(
        (outcome.health.offered, outcome.counts.sent),
        (300, 300 - 69 - 19)
    );
}
