//! Commands to a run under way: the load follows, and the ledger stays exact.

use std::time::Duration;

use thrum_bench::observe::{Command, Observer};
use thrum_bench::{Outcome, Stage, Status, run};
use thrum_load::scenario::Scenario;

use crate::bench::{SECOND, assert_flawless, group, ms, options, pairs, real_broker};

/// Gives commands at their times.
struct Script {
    /// Last one first.
    to_come: Vec<(Stage, Duration, Command)>,
    is_due: bool,
}

impl Script {
    fn new(commands: &[(Stage, u64, Command)]) -> Self {
        let commands = commands.iter().rev();
        let to_come = commands.map(|(stage, at_ms, command)| (*stage, ms(*at_ms), command.clone()));
        Self {
            to_come: to_come.collect(),
            is_due: false,
        }
    }
}

impl Observer for Script {
    fn look(&mut self, status: &Status) {
        let next = self.to_come.last();
        self.is_due =
            next.is_some_and(|(stage, at, _)| status.stage == *stage && status.elapsed >= *at);
    }

    fn next_command(&mut self) -> Option<Command> {
        let is_due = std::mem::take(&mut self.is_due);
        is_due.then(|| self.to_come.pop().unwrap().2)
    }
}

/// Runs it with commands, all of which must have been given.
fn commanded(scenario: Scenario, commands: &[(Stage, u64, Command)]) -> Outcome {
    let (broker, address) = real_broker();
    let mut script = Script::new(commands);
    let outcome = run(scenario, &options(address), &mut script).unwrap();
    broker.stop();
    assert!(script.to_come.is_empty());
    assert_flawless(&outcome);
    outcome
}

fn marks(outcome: &Outcome) -> Vec<&str> {
    let marks = outcome.result.marks.iter();
    marks.map(|mark| mark.text.as_str()).collect()
}

/// As many messages were due as were sent, and a second of the series counts the same.
#[track_caller]
fn assert_offered(outcome: &Outcome, messages: std::ops::RangeInclusive<u64>) {
    let (offered, sent) = (outcome.health.offered, outcome.counts.sent);
    assert!(messages.contains(&offered), "{offered}");
    assert_eq!(sent, offered);
    assert_eq!(outcome.delivery.expected, offered);
    assert_eq!(outcome.latencies.response.len(), offered);
    let in_seconds: u64 = outcome
        .result
        .series
        .iter()
        .map(|second| second.offered)
        .sum();
    assert!(
        in_seconds.abs_diff(offered) <= 10,
        "{in_seconds} of {offered}"
    );
}

#[test]
fn a_higher_rate_offers_more_messages_from_then_on() {
    // Ten pairs at 50/s: 500 messages/s.
    let commands = [(Stage::Hold, 200, Command::Rate(1.5))];
    let outcome = commanded(pairs(10, 50, ms(1_500)), &commands);
    // 250 ms from the command on: 225 messages before, 525 * 1.5 after it; later on a busy machine.
    assert_offered(&outcome, 850..=1_015);
    assert_eq!(marks(&outcome), ["rate 150 % of the planned one"]);
    for second in &outcome.result.series {
        // Of a thread that is late at its end, a second has a few messages less or more.
        assert!(second.offered.abs_diff(second.sent) <= 75, "{second:?}");
    }
}

#[test]
fn a_rate_set_while_clients_connect_holds_from_the_start() {
    let commands = [(Stage::Ramp, 0, Command::Rate(2.0))];
    let outcome = commanded(pairs(10, 50, SECOND), &commands);
    assert_offered(&outcome, 1_000..=1_000);
}

#[test]
fn a_load_that_was_paused_while_clients_connect_waits() {
    let commands = [
        (Stage::Ramp, 0, Command::Pause),
        (Stage::Hold, 100, Command::Resume),
    ];
    let outcome = commanded(pairs(10, 50, SECOND), &commands);
    assert_offered(&outcome, 200..=325);
}

#[test]
fn nothing_is_due_in_a_pause_and_nothing_is_made_up_for() {
    let commands = [
        (Stage::Hold, 100, Command::Pause),
        (Stage::Hold, 600, Command::Note("still".to_owned())),
        (Stage::Hold, 700, Command::Resume),
    ];
    let outcome = commanded(pairs(10, 50, ms(1_500)), &commands);
    assert_offered(&outcome, 380..=500);
    assert_eq!(marks(&outcome), ["paused", "still", "resumed"]);
    let at: Vec<f64> = outcome.result.marks.iter().map(|mark| mark.at).collect();
    assert!(at[1] - at[0] >= 0.48 && at[2] - at[1] >= 0.08, "{at:?}");
    // Without the pause no message would have been late; the pause makes none late.
    assert!(outcome.latencies.response.max() < 450_000_000);
}

#[test]
fn a_longer_hold_offers_its_messages_too() {
    let commands = [(Stage::Hold, 300, Command::Extend(ms(500)))];
    let outcome = commanded(pairs(10, 50, SECOND), &commands);
    assert_eq!(outcome.hold, ms(1_500));
    assert_offered(&outcome, 750..=750);
    let hold = outcome
        .result
        .series
        .iter()
        .filter(|second| second.stage == Stage::Hold);
    let span: f64 = hold.map(|second| second.span).sum();
    assert!((span - 1.5).abs() < 1e-6, "{span}");
}

#[test]
fn of_a_run_that_is_stopped_while_clients_connect_the_clients_are_those_of_its_seconds() {
    let (broker, address) = real_broker();
    let mut scenario = pairs(2_000, 1, SECOND);
    scenario.connect_rate = 20_000;
    let mut script = Script::new(&[(Stage::Ramp, 60, Command::Stop)]);
    let outcome = run(scenario, &options(address), &mut script).unwrap();
    broker.stop();
    let (of, seconds) = (&outcome.result.clients, &outcome.result.series);
    assert!(of.ready > 0 && of.ready < of.wanted, "{of:?}");
    let sum = seconds.iter().map(|second| second.connected).sum::<u64>();
    assert_eq!(of.ready, sum);
    let failed = seconds.iter().map(|second| second.failed).sum::<u64>();
    assert_eq!((of.failed, outcome.clients.failed), (failed, failed));
}

#[test]
fn a_run_that_is_stopped_in_its_warm_up_is_no_pass() {
    let mut scenario = pairs(10, 50, SECOND);
    scenario.stages.warm_up = 10 * SECOND;
    let outcome = commanded(scenario, &[(Stage::WarmUp, 300, Command::Stop)]);
    let result = &outcome.result;
    assert!(outcome.was_interrupted && !result.verdict.pass);
    assert_eq!(
        (result.verdict.text.as_str(), result.exit_code),
        ("ended before the hold: nothing was measured", 130)
    );
}

/// A closed loop of four publishers.
fn closed_loop(hold: Duration) -> Scenario {
    let mut scenario = pairs(4, 1, hold);
    scenario.stages.warm_up = ms(300);
    let publishers = group(&mut scenario, "publishers");
    publishers.publish.as_mut().unwrap().window = Some(1);
    scenario
}

#[test]
fn a_hold_that_is_ended_early_is_exact() {
    let scenario = closed_loop(60 * SECOND);
    let outcome = commanded(scenario, &[(Stage::Hold, 400, Command::Stop)]);
    assert!(outcome.was_interrupted);
    assert!(
        outcome.hold > ms(400) && outcome.hold < 10 * SECOND,
        "{:?}",
        outcome.hold
    );
    let hold = outcome.result.series.iter();
    let hold = hold.filter(|second| second.stage == Stage::Hold);
    let (span, sent) = hold.fold((0.0, 0), |(span, sent), second| {
        (span + second.span, sent + second.sent)
    });
    assert!((span - outcome.hold.as_secs_f64()).abs() < 1e-6, "{span}");
    assert_eq!(sent, outcome.counts.sent_in_hold);
    let of_hold = outcome.latencies.response.len();
    let expected = outcome.health.delays.values().map(|of| of.expected);
    assert_eq!(of_hold, expected.sum::<u64>());
    assert!(of_hold.abs_diff(sent) <= 4, "{of_hold} {sent}");
    let threads = &outcome.result.generator.threads;
    assert!(
        threads.iter().any(|thread| thread.busy_max > 0.0),
        "{threads:?}"
    );
}

/// Is busy once for a third of a second, in the hold.
struct Stall {
    is_over: bool,
}

impl Observer for Stall {
    fn look(&mut self, status: &Status) {
        if status.stage == Stage::Hold && status.elapsed >= ms(1_200) && !self.is_over {
            self.is_over = true;
            let began_ns = thrum_bench::clock::monotonic_ns();
            while thrum_bench::clock::monotonic_ns() < began_ns + 330_000_000 {
                thrum_bench::clock::rest(ms(10));
            }
        }
    }
}

#[test]
fn a_coordinator_that_is_late_within_a_look_makes_the_run_invalid() {
    let (broker, address) = real_broker();
    let mut stall = Stall { is_over: false };
    let outcome = run(pairs(2, 20, 2 * SECOND), &options(address), &mut stall).unwrap();
    broker.stop();
    let late_ns = outcome.health.coordinator.late_ns_max;
    assert!(stall.is_over && late_ns >= 300_000_000, "{late_ns}");
    let limits = &outcome.result.validity.limits;
    assert!(
        limits
            .iter()
            .any(|limit| limit.contains("the coordinator was up to ")),
        "{limits:?}"
    );
    assert!(
        outcome
            .result
            .validity
            .withheld
            .contains_key("broker.cores.max")
    );
}

#[test]
fn changes_add_up() {
    let commands = [
        (Stage::Hold, 50, Command::Rate(0.5)),
        (Stage::Hold, 100, Command::Rate(4.0)),
        (Stage::Hold, 150, Command::Pause),
        (Stage::Hold, 200, Command::Rate(0.5)),
        (Stage::Hold, 300, Command::Extend(ms(200))),
        (Stage::Hold, 400, Command::Resume),
    ];
    let outcome = commanded(pairs(10, 50, SECOND), &commands);
    assert_eq!(outcome.hold, ms(1_200));
    // 250 ms, half a moment, a double moment, a pause, and 550 ms at the planned rate.
    assert_offered(&outcome, 300..=550);
    assert_eq!(marks(&outcome).len(), 6);
}

#[test]
fn a_closed_loop_continues_after_a_pause() {
    let mut scenario = closed_loop(2 * SECOND);
    scenario.stages.warm_up = Duration::ZERO;
    let commands = [
        (Stage::Hold, 100, Command::Pause),
        (Stage::Hold, 500, Command::Resume),
    ];
    let outcome = commanded(scenario, &commands);
    assert_eq!(outcome.delivery.expected, outcome.counts.sent);
    let hold = outcome
        .result
        .series
        .iter()
        .filter(|second| second.stage == Stage::Hold);
    let sent: Vec<u64> = hold.map(|second| second.sent).collect();
    assert_eq!(sent.len(), 2);
    assert!(sent[0] > 0 && sent[1] > sent[0] / 2, "{sent:?}");
}
