//! Brokers side by side: the same scenarios, several rounds, one machine.

mod figure;
mod judged;
mod markdown;

use serde::{Deserialize, Serialize};

use crate::result::{Machine, RunResult};

pub use figure::{Column, Spread, columns, counted};
pub use judged::conclusions;
pub(crate) use judged::{Judged, Winner, sentences};
pub use markdown::markdown;
pub(crate) use markdown::{
    Cell, block, cells, configurations, explanation, headings, notes, tables, winners,
};

/// A comparison of brokers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VersusReport {
    /// Its heading.
    pub title: String,
    /// The command line that repeats it.
    pub command: String,
    /// Runs per broker and scenario.
    pub rounds: u32,
    /// The machine of all runs.
    pub machine: Machine,
    /// The scenarios.
    pub scenarios: Vec<VersusScenario>,
}

/// One scenario with all brokers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VersusScenario {
    /// Its name.
    pub name: String,
    /// Its purpose, in one line.
    pub summary: String,
    /// The complete scenario file.
    pub toml: String,
    /// The brokers in the order of the tables.
    pub brokers: Vec<VersusBroker>,
}

/// One broker in one scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VersusBroker {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its configuration.
    pub configuration: String,
    /// A note for the reader of its figures; mostly empty.
    pub note: String,
    /// One per round.
    pub runs: Vec<RunResult>,
}

impl VersusScenario {
    /// Whether clients only connect.
    pub fn connections_only(&self) -> bool {
        let mut runs = self.brokers.iter().flat_map(|broker| &broker.runs);
        runs.all(|run| run.rates.offered == 0.0 && run.delivery.expected == 0)
    }
}

impl VersusBroker {
    /// Name and version; most version commands print the name too.
    pub fn label(&self) -> String {
        match (
            self.version.is_empty(),
            self.version.starts_with(&self.name),
        ) {
            (true, _) => self.name.clone(),
            (false, true) => self.version.clone(),
            (false, false) => format!("{} {}", self.name, self.version),
        }
    }

    /// The output of its version command, without its name.
    pub fn version_text(&self) -> &str {
        let rest = self.version.strip_prefix(&self.name);
        rest.unwrap_or(&self.version).trim_start()
    }

    /// Whether the generator limited every run: the figures are shown and are not the broker's.
    pub fn is_void(&self) -> bool {
        !self.runs.is_empty() && self.valid().0 == 0
    }

    /// Runs in which the broker kept the promises of the protocol: `2 of 3`.
    pub fn passed(&self) -> (usize, usize) {
        let passed = self.runs.iter().filter(|run| run.verdict.pass).count();
        (passed, self.runs.len())
    }

    /// Runs whose figures are the broker's.
    pub fn valid(&self) -> (usize, usize) {
        let valid = self.runs.iter().filter(|run| run.validity.valid).count();
        (valid, self.runs.len())
    }
}

/// The note about a broker whose rounds were all INVALID.
pub fn void_note(broker: &str, scenario: &str) -> String {
    format!(
        "{broker}, {scenario}: every round was INVALID: the generator was the limit, so these figures are not the broker's"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_the_name_once() {
        let label = |name: &str, version: &str| {
            let broker = VersusBroker {
                name: name.to_owned(),
                version: version.to_owned(),
                ..VersusBroker::default()
            };
            (broker.label(), broker.version_text().to_owned())
        };
        let both = |label: &str, version: &str| (label.to_owned(), version.to_owned());
        assert_eq!(
            label("mosquitto", "mosquitto version 2.0.11"),
            both("mosquitto version 2.0.11", "version 2.0.11")
        );
        assert_eq!(label("emqx", "5.8.0"), both("emqx 5.8.0", "5.8.0"));
        assert_eq!(label("nanomq", ""), both("nanomq", ""));
    }
}
