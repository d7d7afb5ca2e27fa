//! Changes to a scenario from outside its file: settings, numbers, limits, its fit to a machine.

use thrum_report::{Threshold, ThresholdError};
use thrum_settings::problem::Problems;

use super::{
    Document, OverrideError, Overrides, ReachError, Scenario, UnknownScenario, check_confined,
    find_document, find_toml, load_with, to_toml,
};

/// Part of the open files of a process that a broker has for clients: it keeps the rest for other
/// things.
const BROKER_SHARE: f64 = 0.9;

/// In front of the value of a file in a message.
const FOUND: &str = ", found ";

/// Changes to a scenario, in the order in which they are made.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Keys of the file and their values.
    pub sets: Vec<(String, String)>,
    /// Numbers.
    pub overrides: Overrides,
    /// About this many clients in all, in proportion.
    pub clients: Option<u32>,
    /// Most clients that one process of this machine can have: a scenario that is too big for a
    /// broker here is scaled down.
    pub clients_max: Option<u32>,
    /// Refuses a scenario that runs commands, reads files or names passwords. Its errors repeat
    /// nothing of its file.
    pub confined: bool,
    /// Limits such as `e2e.p99 < 5ms`.
    pub thresholds: Vec<String>,
}

/// Why a scenario cannot be changed so.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The file or a setting is wrong.
    #[error(transparent)]
    File(#[from] Problems),
    /// There is no such scenario.
    #[error(transparent)]
    Unknown(#[from] UnknownScenario),
    /// A number does not fit.
    #[error(transparent)]
    Override(#[from] OverrideError),
    /// It does more than it may.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// A limit without a comparison.
    #[error("'{0}' is not a threshold: write one like 'e2e.p99 < 5ms'")]
    NoThreshold(String),
    /// A limit of an unknown figure, or with a wrong value.
    #[error(transparent)]
    Threshold(#[from] ThresholdError),
}

impl Changes {
    /// The scenarios of a file, changed: one, or the steps of a sweep. `origin` is the name of the
    /// file.
    ///
    /// # Errors
    /// The file is wrong, or cannot be changed so.
    pub fn of_file(&self, text: &str, origin: &str) -> Result<Vec<Scenario>, ChangeError> {
        let document = load_with(text, origin, &self.sets).map_err(|problems| {
            if self.confined {
                without_values(problems)
            } else {
                problems
            }
        })?;
        self.changed(document)
    }

    /// The same of a built-in scenario.
    ///
    /// # Errors
    /// There is none of this name, or it cannot be changed so.
    pub fn of_built_in(&self, name: &str) -> Result<Vec<Scenario>, ChangeError> {
        self.changed(self.built_in(name)?)
    }

    /// The same of a built-in scenario that is given another shape first.
    ///
    /// # Errors
    /// There is none of this name, or it cannot be changed so.
    pub fn shaped(
        &self,
        name: &str,
        shape: impl Fn(&mut Scenario),
    ) -> Result<Vec<Scenario>, ChangeError> {
        let mut document = self.built_in(name)?;
        for scenario in &mut document.scenarios {
            shape(scenario);
            scenario.toml = to_toml(scenario);
        }
        self.changed(document)
    }

    fn built_in(&self, name: &str) -> Result<Document, ChangeError> {
        if self.sets.is_empty() {
            return Ok(find_document(name)?);
        }
        Ok(load_with(&find_toml(name)?, name, &self.sets)?)
    }

    fn changed(&self, document: Document) -> Result<Vec<Scenario>, ChangeError> {
        let scenarios = document.scenarios.into_iter();
        scenarios.map(|scenario| self.change(scenario)).collect()
    }

    fn change(&self, scenario: Scenario) -> Result<Scenario, ChangeError> {
        if self.confined {
            check_confined(&scenario)?;
        }
        let mut overrides = self.overrides.clone();
        if let Some(clients) = self.clients {
            overrides.scale = Some(f64::from(clients) / f64::from(scenario.clients().max(1)));
        }
        let mut scenario = scenario.with(&overrides)?;
        if let Some(scale) = fitting(&scenario, self.clients_max) {
            let overrides = Overrides {
                scale: Some(scale),
                // A rate that was asked for stays as it is.
                connect_rate: self.overrides.connect_rate,
                ..Overrides::default()
            };
            scenario = scenario.with(&overrides)?;
        }
        let given = self.thresholds.iter().map(|condition| threshold(condition));
        for threshold in given.collect::<Result<Vec<_>, _>>()? {
            // One limit for each figure, as a file has: the new one replaces the file's.
            let metric = threshold.metric.name;
            scenario
                .thresholds
                .retain(|known| known.metric.name != metric);
            scenario.thresholds.push(threshold);
        }
        if !self.thresholds.is_empty() {
            scenario.toml = to_toml(&scenario);
        }
        Ok(scenario)
    }
}

/// The same without what the file has at their places: it may be a password, whatever its key is
/// called.
fn without_values(problems: Problems) -> Problems {
    let mut problems = problems.without_lines();
    for problem in &mut problems.0 {
        let found = problem.message.find(FOUND);
        problem.message.truncate(found.unwrap_or(usize::MAX));
    }
    problems
}

/// The part of a scenario that a broker has files for, in whole hundredths or ten-thousandths; none
/// if it has them for all of it.
fn fitting(scenario: &Scenario, clients_max: Option<u32>) -> Option<f64> {
    let clients = f64::from(scenario.clients());
    let most = f64::from(clients_max?) * BROKER_SHARE;
    if clients <= most {
        return None;
    }
    let part = most / clients;
    let digits = if part >= 0.1 { 100.0 } else { 10_000.0 };
    Some((part * digits).floor() / digits)
}

/// `e2e.p99 < 5ms`: the figure ends where the comparison begins.
fn threshold(condition: &str) -> Result<Threshold, ChangeError> {
    let at = condition
        .find(['<', '>', '='])
        .ok_or_else(|| ChangeError::NoThreshold(condition.to_owned()))?;
    let (metric, limit) = condition.split_at(at);
    Ok(Threshold::parse(metric.trim(), limit.trim())?)
}

#[cfg(test)]
mod tests {
    use super::super::{find, load};
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
        let scenarios = changes.of_built_in("p2p-1K").unwrap();
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
        let scenario = changes.of_built_in("p2p-1K").unwrap().remove(0);
        let limits: Vec<_> = scenario
            .thresholds
            .iter()
            .map(|threshold| (threshold.metric.name, threshold.text.as_str()))
            .collect();
        assert_eq!(limits, [("lost", "== 0"), ("e2e.p99", "< 1s")]);
        // The stored scenario of the run can be run again.
        let again = load(&scenario.toml, "again").unwrap();
        assert_eq!(again.scenarios[0].thresholds, scenario.thresholds);
    }

    #[test]
    fn a_scenario_that_is_too_big_is_scaled_to_fit() {
        let scenario = find("conn-tcp-1M-5K").unwrap();
        assert_eq!(fitting(&scenario, None), None);
        assert_eq!(fitting(&scenario, Some(2_000_000)), None);
        for (clients_max, scale, clients) in [(500_000, 0.45, 450_000), (1_000, 0.0009, 900)] {
            let changes = Changes {
                clients_max: Some(clients_max),
                ..Changes::default()
            };
            let fitted = changes.of_built_in("conn-tcp-1M-5K").unwrap();
            assert!((fitted[0].scale - scale).abs() < 1e-9);
            assert_eq!(fitted[0].clients(), clients);
        }
    }

    #[test]
    fn a_confined_scenario_runs_no_command() {
        let changes = |confined| Changes {
            confined,
            ..Changes::default()
        };
        assert!(changes(false).of_built_in("broker-restart").is_ok());
        let refused = changes(true).of_built_in("broker-restart").unwrap_err();
        assert!(matches!(refused, ChangeError::Reach(ReachError::Command)));
    }

    #[test]
    fn errors_of_a_confined_scenario_show_no_line_of_it() {
        let error = |text: &str, confined| {
            let changes = Changes {
                confined,
                ..Changes::default()
            };
            changes.of_file(text, "x").unwrap_err().to_string()
        };
        for text in [
            "[groups.a]\nclients = 1\npassword = \"hidden",
            "[groups.a]\nclients = 1\npasword = \"hidden\"\n",
            "[groups.a]\nclients = 1\npassword = [\"hidden\"]\n",
            "target = \"gopher://u:hidden@h\"\n[groups.a]\nclients = 1\n",
        ] {
            assert!(error(text, false).contains("hidden"), "{text}");
            let confined = error(text, true);
            assert!(!confined.contains("hidden"), "{confined}");
            assert!(confined.starts_with("x:"), "{confined}");
        }
    }

    #[test]
    fn a_number_of_clients_scales_every_group_in_proportion() {
        let sized = |clients| {
            let changes = Changes {
                clients: Some(clients),
                ..Changes::default()
            };
            let scenarios = changes.of_built_in("sharedsub-1K-5").unwrap();
            (scenarios[0].clients(), scenarios[0].subscribers())
        };
        assert_eq!(sized(201), (201, 1));
        assert_eq!(sized(10_050), (10_050, 50));
    }

    #[test]
    fn a_connect_rate_that_was_asked_for_is_not_scaled_to_fit() {
        let changes = |connect_rate| Changes {
            clients_max: Some(500_000),
            overrides: Overrides {
                connect_rate,
                ..Overrides::default()
            },
            ..Changes::default()
        };
        let rate = |asked| {
            let fitted = changes(asked).of_built_in("conn-tcp-1M-5K").unwrap();
            fitted[0].connect_rate
        };
        assert_eq!((rate(None), rate(Some(1_000))), (2_250, 1_000));
    }

    #[test]
    fn a_step_of_a_sweep_is_a_scenario() {
        let changes = Changes::default();
        assert_eq!(changes.of_built_in("docs-fanin/10K").unwrap().len(), 1);
        assert!(changes.of_built_in("docs-fanin").unwrap().len() > 1);
        assert!(changes.of_built_in("no/such").is_err());
    }
}
