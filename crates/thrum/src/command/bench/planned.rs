//! What a scenario will do, for programs.

use serde::Serialize;
use thrum_load::scenario::{Entry, Scenario, check_confined, find, sets};

use super::check::needs;
use super::complaint::Complaint;

/// Version of the lines.
const SCHEMA: &str = "thrum-bench-check/1";

/// A scenario and its plan.
#[derive(Debug, Serialize)]
pub(super) struct PlannedScenario {
    schema: &'static str,
    name: String,
    summary: String,
    clients: u32,
    /// Null if it was not planned.
    messages_per_sec_in: Option<f64>,
    messages_per_sec_out: Option<f64>,
    ramp_secs: f64,
    warm_up_secs: f64,
    hold_secs: f64,
    drain_secs: f64,
    /// Null without messages, or if it differs.
    payload_bytes: Option<u32>,
    /// That of deliveries.
    qos: Option<u8>,
    /// The URLs that the scenario names.
    targets: Vec<String>,
    /// With all changes.
    toml: String,
    /// What this machine lacks.
    pub(super) findings: Vec<String>,
}

impl PlannedScenario {
    /// Plans it.
    pub(super) fn new(scenario: &Scenario) -> Result<Self, Complaint> {
        let plan = thrum_bench::plan(scenario.clone(), "check").map_err(Complaint::usage)?;
        let (sent, delivered) = plan.messages_per_second();
        let needs = needs(scenario.clients(), &scenario.source_addresses);
        let lacking = needs.into_iter().filter(|(_, is_met)| !is_met);
        // The text has the mark of a line that is not met, and its title.
        let text = |line: String| line.chars().skip("✗ files    ".chars().count()).collect();
        Ok(Self {
            messages_per_sec_in: Some(sent),
            messages_per_sec_out: Some(delivered),
            payload_bytes: plan.payload_bytes(),
            findings: lacking.map(|(line, _)| text(line)).collect(),
            ..Self::without_load(scenario)
        })
    }

    /// What is known without a plan, which takes time and memory for each client.
    pub(super) fn without_load(scenario: &Scenario) -> Self {
        let urls = scenario.targets.iter();
        Self {
            schema: SCHEMA,
            name: scenario.name.clone(),
            summary: scenario.summary.clone(),
            clients: scenario.clients(),
            messages_per_sec_in: None,
            messages_per_sec_out: None,
            ramp_secs: scenario.ramp().as_secs_f64(),
            warm_up_secs: scenario.stages.warm_up.as_secs_f64(),
            hold_secs: scenario.stages.hold.as_secs_f64(),
            drain_secs: scenario.stages.drain.as_secs_f64(),
            payload_bytes: None,
            qos: scenario.delivery_qos().map(|qos| qos as u8),
            targets: urls.filter_map(|target| target.url.clone()).collect(),
            toml: scenario.toml.clone(),
            findings: Vec::new(),
        }
    }
}

/// A scenario of the catalogue.
#[derive(Debug, Serialize)]
pub(super) struct ListedScenario {
    name: &'static str,
    sets: Vec<&'static str>,
    summary: String,
    clients: u32,
    messages_per_sec_in: f64,
    messages_per_sec_out: f64,
    duration_secs: f64,
    toml: &'static str,
}

impl ListedScenario {
    /// One that a single broker can have without a command.
    pub(super) fn new(entry: &Entry) -> Result<Option<Self>, Complaint> {
        if !entry.steps.is_empty() {
            return Ok(None);
        }
        let scenario = find(entry.alias).map_err(Complaint::usage)?;
        if scenario.targets.len() > 1 || check_confined(&scenario).is_err() {
            return Ok(None);
        }
        let has_it = |names: &[&str]| names.contains(&entry.alias);
        let sets = sets().iter().filter(|set| has_it(set.scenarios));
        let planned = PlannedScenario::new(&scenario)?;
        Ok(Some(Self {
            name: entry.alias,
            sets: sets.map(|set| set.name).collect(),
            duration_secs: planned.ramp_secs
                + planned.warm_up_secs
                + planned.hold_secs
                + planned.drain_secs,
            summary: planned.summary,
            clients: planned.clients,
            messages_per_sec_in: planned.messages_per_sec_in.unwrap_or_default(),
            messages_per_sec_out: planned.messages_per_sec_out.unwrap_or_default(),
            toml: entry.toml,
        }))
    }
}

#[cfg(test)]
mod tests {
    use thrum_load::scenario::catalogue;

    use super::*;

    #[test]
    fn a_plan_has_the_load_and_the_whole_file() {
        let planned = PlannedScenario::new(&find("devices").unwrap()).unwrap();
        assert_eq!((planned.clients, planned.qos), (108, Some(1)));
        assert_eq!(planned.messages_per_sec_in.map(f64::round), Some(100.0));
        assert!(planned.toml.contains("site/berlin"), "{}", planned.toml);
    }

    #[test]
    fn a_scenario_without_a_plan_has_its_size_and_no_load() {
        let scenario = find("conn-tcp-1M-5K").unwrap();
        let unplanned = PlannedScenario::without_load(&scenario);
        assert_eq!(
            (unplanned.clients, unplanned.messages_per_sec_in),
            (1_000_000, None)
        );
        assert!(!unplanned.toml.is_empty());
    }

    #[test]
    fn scenarios_that_need_more_than_one_broker_are_not_listed() {
        let entries = catalogue();
        let is_listed = |alias: &str| {
            let entry = entries.iter().find(|entry| entry.alias == alias).unwrap();
            ListedScenario::new(entry).unwrap().is_some()
        };
        assert!(is_listed("p2p-1K") && is_listed("devices"));
        assert!(!is_listed("docs-fanin") && !is_listed("broker-restart"));
        assert!(!is_listed("docs-bridge"));
    }
}
