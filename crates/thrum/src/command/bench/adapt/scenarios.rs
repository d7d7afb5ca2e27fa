//! Scenarios: names and files, sets, and the changes of the command line.

use std::fs;
use std::path::Path;

use thrum_bench::preflight;
use thrum_load::scenario::{self, Document, Entry, Overrides, Scenario};
use thrum_report::Threshold;

use super::super::complaint::Complaint;

/// Changes on the command line.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Changes {
    pub(in super::super) overrides: Overrides,
    pub(in super::super) sets: Vec<(String, String)>,
    pub(in super::super) thresholds: Vec<String>,
    /// Scale down what needs more open files than this machine gives.
    pub(in super::super) fit: bool,
}

/// The scenarios of a name or a file, changed: one, or the steps of a sweep.
pub(in super::super) fn resolve(
    source: &str,
    changes: &Changes,
) -> Result<Vec<Scenario>, Complaint> {
    let document = document(source, &changes.sets)?;
    let scenarios = document.scenarios.into_iter();
    scenarios
        .map(|scenario| changed(scenario, changes))
        .collect()
}

/// A built-in scenario that is given another shape before it is changed.
pub(in super::super) fn shaped(
    base: &str,
    changes: &Changes,
    shape: impl Fn(&mut Scenario),
) -> Result<Vec<Scenario>, Complaint> {
    let document = document(base, &changes.sets)?;
    let shaped = document.scenarios.into_iter().map(|mut scenario| {
        shape(&mut scenario);
        scenario.toml = scenario::to_toml(&scenario);
        changed(scenario, changes)
    });
    shaped.collect()
}

fn document(source: &str, sets: &[(String, String)]) -> Result<Document, Complaint> {
    if is_file(source) {
        let text = fs::read_to_string(source);
        let text =
            text.map_err(|error| Complaint::usage(format!("cannot read {source}: {error}")))?;
        return scenario::load_with(&text, source, sets).map_err(Complaint::usage);
    }
    if sets.is_empty() {
        return scenario::find_document(source).map_err(Complaint::usage);
    }
    let text = scenario::find_toml(source).map_err(Complaint::usage)?;
    scenario::load_with(&text, source, sets).map_err(Complaint::usage)
}

/// A scenario with the changes of the command line.
fn changed(scenario: Scenario, changes: &Changes) -> Result<Scenario, Complaint> {
    let mut scenario = scenario
        .with(&changes.overrides)
        .map_err(Complaint::usage)?;
    if let Some(scale) = fitting(&scenario, changes.fit) {
        let overrides = Overrides {
            scale: Some(scale),
            ..Overrides::default()
        };
        scenario = scenario.with(&overrides).map_err(Complaint::usage)?;
    }
    let given: Vec<Threshold> = changes
        .thresholds
        .iter()
        .map(|condition| threshold(condition))
        .collect::<Result<_, _>>()?;
    for threshold in given {
        // One limit for each figure, as a file has: that of the command line replaces the file's.
        let metric = threshold.metric.name;
        scenario
            .thresholds
            .retain(|known| known.metric.name != metric);
        scenario.thresholds.push(threshold);
    }
    if !changes.thresholds.is_empty() {
        scenario.toml = scenario::to_toml(&scenario);
    }
    Ok(scenario)
}

/// Part of the open files of a process that a broker has for clients: it keeps the rest for other
/// things.
const BROKER_SHARE: f64 = 0.9;

/// The part of a scenario that this machine's limit of open files allows, in whole hundredths or
/// ten-thousandths; none if it allows all of it.
fn fitting(scenario: &Scenario, is_wanted: bool) -> Option<f64> {
    let clients = f64::from(scenario.clients());
    let most = f64::from(preflight::clients_max()) * BROKER_SHARE;
    if !is_wanted || clients <= most {
        return None;
    }
    let part = most / clients;
    let digits = if part >= 0.1 { 100.0 } else { 10_000.0 };
    Some((part * digits).floor() / digits)
}

/// `e2e.p99 < 5ms`: the figure ends where the comparison begins.
fn threshold(condition: &str) -> Result<Threshold, Complaint> {
    let at = condition.find(['<', '>', '=']).ok_or_else(|| {
        Complaint::usage(format!(
            "'{condition}' is not a threshold: write one like 'e2e.p99 < 5ms'"
        ))
    })?;
    let (metric, limit) = condition.split_at(at);
    Threshold::parse(metric.trim(), limit.trim()).map_err(Complaint::usage)
}

/// A path rather than a name: it ends like a scenario file. A name may have a slash:
/// `docs-fanin/10K`.
fn is_file(source: &str) -> bool {
    Path::new(source)
        .extension()
        .is_some_and(|ending| ending == "toml")
}

/// Every built-in scenario.
pub(in super::super) fn listing() -> Vec<Entry> {
    scenario::catalogue()
}

/// Names of the sets and what they are.
pub(in super::super) fn sets() -> Vec<(&'static str, &'static str)> {
    scenario::sets()
        .iter()
        .map(|(name, help, _)| (*name, *help))
        .collect()
}

/// The scenarios of a set.
pub(in super::super) fn set_members(set: &str) -> Option<Vec<String>> {
    let (_, _, members) = scenario::sets().iter().find(|(name, ..)| *name == set)?;
    Some(members.iter().map(|name| (*name).to_owned()).collect())
}

/// The file of a built-in scenario, or of one given by its numbers.
pub(in super::super) fn file_of(name: &str) -> Result<String, Complaint> {
    let text = scenario::find_toml(name).map_err(Complaint::usage)?;
    Ok(text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_a_figure_and_its_limit() {
        let threshold = threshold("e2e.p99<5ms").unwrap();
        assert_eq!(
            (threshold.metric.name, threshold.limit.round()),
            ("e2e.p99", 5e6)
        );
        for text in ["e2e.p99", "e2e.p98 < 5ms", "e2e.p99 < soon"] {
            assert!(super::threshold(text).is_err(), "{text}");
        }
    }

    #[test]
    fn settings_and_thresholds_change_a_built_in_scenario_and_its_file() {
        let changes = Changes {
            sets: vec![("groups.publishers.publish.qos".to_owned(), "2".to_owned())],
            thresholds: vec!["lost == 0".to_owned()],
            ..Changes::default()
        };
        let scenarios = resolve("p2p-1K", &changes).unwrap();
        let [scenario] = scenarios.as_slice() else {
            panic!("one scenario")
        };
        assert!(
            scenario.toml.contains("qos = 2") && scenario.toml.contains("lost"),
            "{}",
            scenario.toml
        );
    }

    #[test]
    fn a_threshold_of_the_command_line_replaces_that_of_the_file() {
        let changes = Changes {
            sets: vec![("thresholds.\"e2e.p99\"".to_owned(), "< 5ms".to_owned())],
            thresholds: ["e2e.p99 < 2s", "lost == 0", "e2e.p99 < 1s"]
                .map(str::to_owned)
                .to_vec(),
            ..Changes::default()
        };
        let scenario = resolve("p2p-1K", &changes).unwrap().remove(0);
        let limits: Vec<_> = scenario
            .thresholds
            .iter()
            .map(|threshold| (threshold.metric.name, threshold.text.as_str()))
            .collect();
        assert_eq!(limits, [("lost", "== 0"), ("e2e.p99", "< 1s")]);
        // The stored scenario of the run can be run again.
        let again = scenario::load(&scenario.toml, "again").unwrap();
        assert_eq!(again.scenarios[0].thresholds, scenario.thresholds);
    }

    #[test]
    fn a_scenario_that_is_too_big_is_scaled_to_fit() {
        let scenario = scenario::find("conn-tcp-1M-5K").unwrap();
        assert_eq!(fitting(&scenario, false), None);
        let most = preflight::clients_max();
        if let Some(scale) = fitting(&scenario, true) {
            let changes = Changes {
                fit: true,
                ..Changes::default()
            };
            let fitted = resolve("conn-tcp-1M-5K", &changes).unwrap();
            assert!(fitted[0].clients() <= most && fitted[0].clients() > most / 2);
            assert!((fitted[0].scale - scale).abs() < 1e-9);
        }
    }

    #[test]
    fn a_step_of_a_sweep_is_a_scenario() {
        assert_eq!(
            resolve("docs-fanin/10K", &Changes::default())
                .unwrap()
                .len(),
            1
        );
        assert!(resolve("docs-fanin", &Changes::default()).unwrap().len() > 1);
        assert!(resolve("no/such.toml", &Changes::default()).is_err());
    }
}
