//! Conditions that should be equal on both sides and are not.

use std::collections::BTreeSet;

use crate::result::RunResult;
use thrum_figures::{bytes, figure, fraction};

/// Differing values shown of one condition and side.
const SHOWN_MAX: usize = 3;

type Condition = (&'static str, fn(&RunResult) -> String);

/// The compared conditions: the broker is not among them, because comparisons are made between
/// brokers.
const CONDITIONS: [Condition; 14] = [
    ("scenario", |run| run.scenario.name.clone()),
    ("scale", |run| figure(run.scenario.scale)),
    ("load", |run| run.scenario.load.text.clone()),
    ("arrivals", arrivals),
    ("QoS", |run| {
        run.scenario
            .qos
            .map_or_else(|| "none".to_owned(), |qos| qos.to_string())
    }),
    ("payload", payload),
    ("MQTT version", |run| run.scenario.mqtt_version.clone()),
    ("transport", |run| run.scenario.transport.clone()),
    ("clients", |run| run.clients.wanted.to_string()),
    ("groups", groups),
    ("hold", |run| {
        format!("{} s", figure(run.scenario.stages.hold))
    }),
    ("machine", machine),
    ("kernel", |run| run.machine.kernel.clone()),
    ("tool", |run| run.tool.version.clone()),
];

/// One line for each condition that is not the same in all runs.
pub(super) fn differences(baseline: &[RunResult], candidate: &[RunResult]) -> Vec<String> {
    let differing = CONDITIONS.iter().filter_map(|(name, condition)| {
        let [left, right] = [baseline, candidate].map(|runs| values(runs, *condition));
        let differs = left != right || left.len() > 1;
        differs.then(|| format!("{name} differs: {} | {}", shown(&left), shown(&right)))
    });
    differing.collect()
}

/// Reasons not to trust runs, whatever they are compared with.
pub(super) fn faults(baseline: &[RunResult], candidate: &[RunResult]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (side, runs) in [("A", baseline), ("B", candidate)] {
        if runs.is_empty() {
            warnings.push(format!("{side} has no runs"));
        }
        for run in runs {
            warnings.extend(fault(side, run));
        }
    }
    warnings
}

fn fault(side: &str, run: &RunResult) -> Option<String> {
    let what = if !run.validity.valid {
        format!(
            "is INVALID, its figures are the generator's: {}",
            run.validity.limits.join(", ")
        )
    } else if run.interrupted {
        "was interrupted".to_owned()
    } else if !run.verdict.pass {
        format!("broke promises of the protocol: {}", run.verdict.text)
    } else {
        return None;
    };
    Some(format!("{side} run of {} {what}", run.started))
}

fn values(runs: &[RunResult], condition: fn(&RunResult) -> String) -> BTreeSet<String> {
    runs.iter().map(condition).collect()
}

fn shown(values: &BTreeSet<String>) -> String {
    let mut texts: Vec<&str> = values.iter().take(SHOWN_MAX).map(String::as_str).collect();
    if values.len() > SHOWN_MAX {
        texts.push("…");
    }
    texts.join(", ")
}

fn payload(run: &RunResult) -> String {
    let size = run.scenario.payload_bytes;
    size.map_or_else(
        || "none".to_owned(),
        |size| format!("{size} B {}", run.scenario.payload),
    )
}

/// Older results do not name it: theirs was the only one.
fn arrivals(run: &RunResult) -> String {
    match run.scenario.load.arrivals.as_str() {
        "" => "even".to_owned(),
        named => named.to_owned(),
    }
}

fn groups(run: &RunResult) -> String {
    let groups = run.scenario.groups.iter();
    let texts: Vec<String> = groups
        .map(|group| format!("{} × {}", group.clients, group.text))
        .collect();
    texts.join("; ")
}

fn machine(run: &RunResult) -> String {
    let machine = &run.machine;
    let memory = bytes(fraction(machine.memory_bytes));
    let text = format!("{}, {} cores, {memory}", machine.cpu, machine.cores);
    match run.agents.len() {
        0 => text,
        agents => format!("{text}, {agents} agents"),
    }
}
