//! The combined result of many runs of many brokers: medians with the lowest and the highest,
//! broker by broker.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thrum_report::versus::{Spread, counted};

/// Name and version of the schema of `versus.json`.
const SCHEMA: &str = "thrum-bench-versus/1";

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Ended {
    /// With figures.
    Measured {
        /// The broker kept the promises of the protocol.
        pass: bool,
        /// The generator was not the limit.
        valid: bool,
        /// By the names of the metrics.
        figures: BTreeMap<String, f64>,
        /// The folder of the run's files, relative to the folder of the comparison.
        folder: String,
    },
    /// The broker ended unexpectedly.
    Crashed {
        /// Exit status and the end of its log.
        how: String,
    },
    /// There are no figures for another reason.
    Failed {
        /// As text.
        why: String,
    },
}

/// One run of one broker.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// Name of the broker.
    pub broker: String,
    /// Name of the scenario.
    pub scenario: String,
    /// From 1.
    pub round: u32,
    /// Its end.
    pub ended: Ended,
}

/// One broker in one scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the broker.
    pub broker: String,
    /// Runs with figures.
    pub measured: u32,
    /// Of these, runs that kept the promises of the protocol.
    pub passed: u32,
    /// Of these, runs that the generator did not limit.
    pub valid: u32,
    /// Runs in which the broker ended unexpectedly.
    pub crashed: u32,
    /// Runs without figures for another reason.
    pub failed: u32,
    /// By the names of the metrics; runs that the generator limited are left out if there are
    /// others.
    pub figures: BTreeMap<String, Spread>,
}

/// A broker of the comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// As its version command prints it.
    pub version: String,
    /// Whether its program is on this machine.
    pub installed: bool,
    /// Its download location.
    pub obtain: String,
    /// Under which terms.
    pub license: String,
    /// A note for the reader of the results.
    pub note: String,
}

/// A whole comparison, as `versus.json` has it.
#[derive(Clone, Debug, Serialize)]
pub struct VersusReport {
    schema: &'static str,
    /// The command line that repeats it.
    pub command: String,
    /// Rounds.
    pub rounds: u32,
    /// The brokers, including those that are not installed.
    pub brokers: Vec<Entry>,
    /// Scenario by scenario, in each the brokers in their order.
    pub standings: Vec<Standing>,
    /// Every run in the order of time.
    pub runs: Vec<Run>,
}

impl VersusReport {
    /// Adds up the runs.
    pub fn new(command: String, rounds: u32, brokers: Vec<Entry>, runs: Vec<Run>) -> Self {
        Self {
            schema: SCHEMA,
            command,
            rounds,
            standings: standings(&brokers, &runs),
            brokers,
            runs,
        }
    }
}

/// The standings of all brokers that ran.
pub fn standings(brokers: &[Entry], runs: &[Run]) -> Vec<Standing> {
    let mut scenarios: Vec<&str> = Vec::new();
    for run in runs {
        if !scenarios.contains(&run.scenario.as_str()) {
            scenarios.push(&run.scenario);
        }
    }
    let pairs = scenarios.into_iter().flat_map(|scenario| {
        brokers
            .iter()
            .map(move |broker| (scenario, broker.name.as_str()))
    });
    pairs
        .filter_map(|(scenario, broker)| standing(scenario, broker, runs))
        .collect()
}

fn standing(scenario: &str, broker: &str, runs: &[Run]) -> Option<Standing> {
    let of_pair = runs
        .iter()
        .filter(|run| run.scenario == scenario && run.broker == broker);
    let mut standing = Standing {
        scenario: scenario.to_owned(),
        broker: broker.to_owned(),
        measured: 0,
        passed: 0,
        valid: 0,
        crashed: 0,
        failed: 0,
        figures: BTreeMap::new(),
    };
    let mut rounds = Vec::new();
    for run in of_pair {
        match &run.ended {
            Ended::Crashed { .. } => standing.crashed += 1,
            Ended::Failed { .. } => standing.failed += 1,
            Ended::Measured {
                pass,
                valid,
                figures,
                ..
            } => {
                standing.measured += 1;
                standing.passed += u32::from(*pass);
                standing.valid += u32::from(*valid);
                rounds.push((*valid, figures));
            }
        }
    }
    let mut figures = Values::default();
    for (_, round) in counted(&rounds, |(valid, _)| *valid) {
        figures.add(round);
    }
    standing.figures = figures.spreads();
    let runs = standing.measured + standing.crashed + standing.failed;
    (runs > 0).then_some(standing)
}

#[derive(Default)]
struct Values(BTreeMap<String, Vec<f64>>);

impl Values {
    fn add(&mut self, figures: &BTreeMap<String, f64>) {
        for (name, value) in figures {
            self.0.entry(name.clone()).or_default().push(*value);
        }
    }

    fn spreads(self) -> BTreeMap<String, Spread> {
        let spreads = self.0.into_iter();
        spreads
            .filter_map(|(name, values)| Some((name, Spread::of(values)?)))
            .collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::versus) fn entry(name: &str, installed: bool) -> Entry {
        Entry {
            name: name.to_owned(),
            version: "1.0".to_owned(),
            installed,
            obtain: "apt install it".to_owned(),
            license: "MIT".to_owned(),
            note: String::new(),
        }
    }

    pub(in crate::versus) fn run(broker: &str, round: u32, ended: Ended) -> Run {
        Run {
            broker: broker.to_owned(),
            scenario: "p2p-1K".to_owned(),
            round,
            ended,
        }
    }

    pub(in crate::versus) fn measured(p99: f64, valid: bool) -> Ended {
        Ended::Measured {
            pass: true,
            valid,
            figures: BTreeMap::from([("e2e.p99".to_owned(), p99)]),
            folder: "x".to_owned(),
        }
    }

    #[test]
    fn a_crash_is_counted_and_does_not_spoil_the_figures() {
        let runs = [
            run("a", 1, measured(5.0, true)),
            run(
                "b",
                1,
                Ended::Crashed {
                    how: "signal".to_owned(),
                },
            ),
            run("a", 2, measured(7.0, true)),
            run("b", 2, measured(2.0, true)),
        ];
        let brokers = [entry("a", true), entry("b", true), entry("c", false)];
        let found = standings(&brokers, &runs);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].measured, found[0].crashed), (2, 0));
        assert_eq!((found[1].measured, found[1].crashed), (1, 1));
        assert!((found[0].figures["e2e.p99"].median - 6.0).abs() < 1e-9);
    }

    #[test]
    fn runs_that_the_generator_limited_are_left_out_if_there_are_others() {
        let brokers = [entry("a", true)];
        let runs = [
            run("a", 1, measured(90.0, false)),
            run("a", 2, measured(3.0, true)),
        ];
        let found = standings(&brokers, &runs);
        assert!((found[0].figures["e2e.p99"].max - 3.0).abs() < 1e-9);
        let found = standings(&brokers, &runs[..1]);
        assert!((found[0].figures["e2e.p99"].max - 90.0).abs() < 1e-9);
    }
}
