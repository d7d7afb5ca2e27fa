//! The outcomes of the mutants of a crate.

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Mutants by outcome.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// The crate.
    pub(super) name: String,
    /// Mutants that the compiler refuses: no test can meet them.
    unviable: usize,
    /// A test failed, or waited for something that did not come.
    caught: usize,
    /// Mutants that no test noticed: place and change.
    missed: Vec<String>,
}

impl Tally {
    /// Reads the outcomes as cargo-mutants writes them.
    pub(super) fn parse(name: &str, outcomes: &str) -> Result<Self> {
        let outcomes: Value =
            serde_json::from_str(outcomes).context("outcomes of cargo mutants")?;
        let outcomes = outcomes["outcomes"].as_array();
        let mut tally = Self {
            name: name.to_owned(),
            ..Self::default()
        };
        for outcome in outcomes.context("cargo mutants lists no outcomes")? {
            let Some(mutant) = outcome["scenario"].get("Mutant") else {
                // The tests without a mutant passed, or there would be no outcomes of mutants.
                continue;
            };
            match outcome["summary"].as_str() {
                Some("Unviable") => tally.unviable += 1,
                Some("CaughtMutant" | "Timeout") => tally.caught += 1,
                Some("MissedMutant") => {
                    let place = mutant["name"].as_str().context("a mutant has no name")?;
                    tally.missed.push(place.to_owned());
                }
                other => bail!("cargo mutants says {other:?} of a mutant"),
            }
        }
        Ok(tally)
    }

    fn viable(&self) -> usize {
        self.caught + self.missed.len()
    }

    /// Viable mutants that were caught, rounded down; all of none are 100 %.
    pub(super) fn caught_percent(&self) -> usize {
        match self.viable() {
            0 => 100,
            viable => self.caught * 100 / viable,
        }
    }
}

/// The missed mutants and a line for each crate.
pub(super) fn table(tallies: &[Tally]) -> String {
    let mut lines = Vec::new();
    for missed in tallies.iter().flat_map(|tally| &tally.missed) {
        lines.push(format!("missed: {missed}"));
    }
    lines.push("crate         mutants  viable  caught  missed".to_owned());
    for tally in tallies {
        lines.push(format!(
            "{:<12} {:>8} {:>7} {:>7} {:>7}  {} %",
            tally.name,
            tally.viable() + tally.unviable,
            tally.viable(),
            tally.caught,
            tally.missed.len(),
            tally.caught_percent()
        ));
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcomes(summaries: &[&str]) -> String {
        let mutants = summaries.iter().enumerate().map(|(line, summary)| {
            json!({"summary": summary, "scenario": {"Mutant": {"name": format!("a.rs:{line}")}}})
        });
        let baseline = json!({"summary": "Success", "scenario": "Baseline"});
        let all: Vec<Value> = std::iter::once(baseline).chain(mutants).collect();
        json!({ "outcomes": all }).to_string()
    }

    #[test]
    fn a_timeout_is_a_catch_and_an_unviable_mutant_does_not_count() {
        let text = outcomes(&["Unviable", "CaughtMutant", "Timeout", "MissedMutant"]);
        let tally = Tally::parse("codec", &text).unwrap();
        assert_eq!(tally.caught_percent(), 66);
        let table = table(&[tally]);
        assert!(table.contains("missed: a.rs:3\n"), "{table}");
        assert!(
            table.ends_with("\ncodec               4       3       2       1  66 %\n"),
            "{table}"
        );
    }

    #[test]
    fn a_crate_without_viable_mutants_has_missed_none() {
        let tally = Tally::parse("codec", &outcomes(&["Unviable"])).unwrap();
        assert_eq!(tally.caught_percent(), 100);
    }

    #[test]
    fn outcomes_that_are_not_understood_are_an_error() {
        assert!(Tally::parse("codec", "{}").is_err());
        assert!(Tally::parse("codec", &outcomes(&["Failure"])).is_err());
    }
}
