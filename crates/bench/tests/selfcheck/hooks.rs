//! Commands that a scenario runs during the hold.

use std::fs;
use std::path::PathBuf;

use thrum_bench::{Outcome, RunError, run};
use thrum_codec::ReasonCode;
use thrum_load::scenario::{Fault, FaultKind, Scenario};

use crate::bench::{NoObserver, SECOND, lawful, ms, options, pairs, run_against};
use crate::fake_broker::FakeBroker;

fn with_hook(at_ms: u64, command: &str) -> Scenario {
    let mut scenario = pairs(2, 20, SECOND);
    scenario.faults.push(Fault {
        at: ms(at_ms),
        lasts: ms(0),
        kind: FaultKind::Hook {
            command: command.to_owned(),
        },
    });
    scenario
}

fn marks(outcome: &Outcome) -> Vec<&str> {
    let marks = outcome.result.marks.iter();
    marks.map(|mark| mark.text.as_str()).collect()
}

/// A file of this test process that is not there yet.
fn fresh_file(name: &str) -> PathBuf {
    let file = std::env::temp_dir().join(format!("thrum-{name}-{}", std::process::id()));
    drop(fs::remove_file(&file));
    file
}

#[test]
fn a_command_runs_once_and_leaves_its_marks() {
    let broker = FakeBroker::start(ReasonCode::Success, lawful);
    let file = fresh_file("hook");
    let command = format!("echo once >> {}", file.display());
    let outcome = run_against(broker.address, with_hook(300, &command));
    assert_eq!(fs::read_to_string(&file).unwrap(), "once\n");
    fs::remove_file(&file).unwrap();
    let (runs, ended) = (
        format!("'{command}' runs"),
        format!("'{command}' ended: exit status: 0"),
    );
    assert_eq!(marks(&outcome), [runs.as_str(), ended.as_str()]);
    let hold = outcome.result.series.iter();
    let mut hold = hold.filter(|second| second.stage == thrum_bench::Stage::Hold);
    assert!(outcome.result.marks[0].at >= hold.next().unwrap().at + 0.299);
    assert_eq!(outcome.delivery.lost, 0);
}

#[test]
fn a_failed_command_is_reported() {
    let broker = FakeBroker::start(ReasonCode::Success, lawful);
    let outcome = run_against(broker.address, with_hook(100, "exit 3"));
    assert_eq!(
        marks(&outcome),
        ["'exit 3' runs", "'exit 3' ended: exit status: 3"]
    );
}

#[test]
fn a_command_that_outlasts_the_hold_is_reported_too() {
    let broker = FakeBroker::start(ReasonCode::Success, lawful);
    // It ends when the drain has begun: the rest of the run lasts for 400 ms.
    let outcome = run_against(broker.address, with_hook(950, "sleep 0.2; exit 4"));
    assert_eq!(
        marks(&outcome).last(),
        Some(&"'sleep 0.2; exit 4' ended: exit status: 4")
    );
}

#[test]
fn a_hook_without_a_command_needs_one_from_outside() {
    let broker = FakeBroker::start(ReasonCode::Success, lawful);
    let mut options = options(broker.address);
    let error = run(with_hook(250, ""), &options, &mut NoObserver).unwrap_err();
    assert!(
        matches!(error, RunError::NoHook { at } if at == ms(250)),
        "{error}"
    );
    assert_eq!(error.exit_code(), 2);
    let file = fresh_file("on-fault");
    options.on_fault = Some(format!("echo twice >> {}", file.display()));
    let mut scenario = with_hook(250, "");
    scenario.faults.push(Fault {
        at: ms(500),
        ..scenario.faults[0].clone()
    });
    let outcome = run(scenario, &options, &mut NoObserver).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "twice\ntwice\n");
    fs::remove_file(&file).unwrap();
    let runs = marks(&outcome)
        .iter()
        .filter(|mark| **mark == "the --on-fault command runs")
        .count();
    assert_eq!(runs, 2);
}
