//! The built-in scenarios by name.

use std::borrow::Cow;

use thrum_settings::edit_distance;

use super::grammar::{self, Named};
use super::{Document, Scenario, load};

/// A name that no built-in scenario has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", explanation(.name, .closest, .reason.as_deref()))]
pub struct UnknownScenario {
    /// The requested name.
    pub name: String,
    /// The most similar name.
    pub closest: String,
    /// The error in the name, if it has the form of a family.
    pub reason: Option<String>,
}

/// A built-in scenario or sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Full name.
    pub name: &'static str,
    /// Shorter name; the same if it has none.
    pub alias: &'static str,
    /// Its purpose, in one line.
    pub summary: String,
    /// Names of its steps, if it is a sweep.
    pub steps: Vec<String>,
    /// Its file.
    pub toml: &'static str,
}

/// A built-in file.
#[derive(Clone, Copy, Debug)]
struct File {
    /// Full name.
    name: &'static str,
    /// Shorter name; the same if it has none.
    alias: &'static str,
    toml: &'static str,
}

/// The file of a scenario, with its alias if it has one.
macro_rules! file {
    ($name:literal) => {
        file!($name, $name)
    };
    ($name:literal, $alias:literal) => {
        File {
            name: $name,
            alias: $alias,
            toml: include_str!(concat!("../../scenarios/", $name, ".toml")),
        }
    };
}

const FILES: [File; 38] = [
    file!("singlenode-conn-tcp-10K-100", "conn-tcp-10K-100"),
    file!("singlenode-fanout-1-1K-1-1K", "fanout-1-1K"),
    file!("singlenode-p2p-1K-1K-1K-1K", "p2p-1K"),
    file!("singlenode-sharedsub-1K-5-1K-1K", "sharedsub-1K-5"),
    file!("singlenode-conn-tcp-1M-5K", "conn-tcp-1M-5K"),
    file!("singlenode-fanout-5-1000-5-250K", "fanout-5-1000-5-250K"),
    file!("singlenode-p2p-50K-50K-50K-50K", "p2p-50K"),
    file!("singlenode-sharedsub-50K-500-50K-50K", "sharedsub-50K-500"),
    file!("composite"),
    file!("emqx-latency-1K-1K-qos0"),
    file!("emqx-latency-1K-1K-qos1"),
    file!("emqx-latency-1K-1K-qos2"),
    file!("emqx-fanout-20-1000-2M"),
    file!("emqx-ci-gate"),
    file!("emqtt-bench-throughput"),
    file!("docs-qos-sweep"),
    file!("docs-payload-sweep"),
    file!("docs-fanin"),
    file!("docs-fanout"),
    file!("docs-symmetric"),
    file!("docs-bridge"),
    file!("xmeter-conn"),
    file!("xmeter-publish"),
    file!("xmeter-one-to-one"),
    file!("xmeter-fan-out"),
    file!("xmeter-fan-in"),
    file!("reconnect-storm"),
    file!("persistent-session"),
    file!("durable-publish"),
    file!("broker-restart"),
    file!("half-open"),
    file!("slow-reader"),
    file!("stalled-reader"),
    file!("weak-network"),
    file!("request-response"),
    file!("payload-json"),
    file!("ramp-to-limit"),
    file!("devices"),
];

/// All built-in scenarios.
pub fn catalogue() -> Vec<Entry> {
    // A test loads every file; a broken one would only be missing here.
    FILES.iter().filter_map(entry).collect()
}

/// Finds a single scenario: by its full name or its alias, in any case, by the name of a step of a
/// sweep (`docs-fanin/10K`), or by a name with all its numbers (`p2p-200-200-400-400`).
///
/// # Errors
/// An unknown name, contradictory numbers, or a sweep; the error proposes the closest name.
pub fn find(name: &str) -> Result<Scenario, UnknownScenario> {
    let mut scenarios = find_document(name)?.scenarios;
    match (scenarios.pop(), scenarios.first()) {
        (Some(scenario), None) => Ok(scenario),
        (_, first) => {
            let closest = first.map_or_else(String::new, |first| first.alias.clone());
            let count = scenarios.len() + 1;
            let reason = format!("it is a sweep of {count} steps, one of them is '{closest}'");
            Err(UnknownScenario {
                name: name.to_owned(),
                closest,
                reason: Some(reason),
            })
        }
    }
}

/// As [`find`], sweeps included.
///
/// # Errors
/// As [`find`].
pub fn find_document(name: &str) -> Result<Document, UnknownScenario> {
    open(name, &find_toml(name)?)
}

/// The file of what [`find_document`] finds, to be loaded with changes.
///
/// # Errors
/// As [`find`].
pub fn find_toml(name: &str) -> Result<Cow<'static, str>, UnknownScenario> {
    if let Some(file) = file_of(name) {
        return Ok(file.toml.into());
    }
    if let Some((sweep, step)) = name.split_once('/')
        && let Some(file) = file_of(sweep)
    {
        return step_toml(name, step, file).map(Cow::Owned);
    }
    match grammar::parse(name) {
        Some(Ok(named)) => match FILES.iter().find(|file| is_named(file, named)) {
            Some(file) => Ok(file.toml.into()),
            None => Ok(named.toml().into()),
        },
        Some(Err(reason)) => Err(unknown(name, Some(reason))),
        None => Err(unknown(name, None)),
    }
}

fn step_toml(name: &str, step: &str, file: &File) -> Result<String, UnknownScenario> {
    let alias = file.alias;
    let scenarios = open(name, file.toml)?.scenarios;
    let steps = scenarios.into_iter();
    let steps = steps.filter_map(|scenario| Some((step_name(&scenario)?.to_owned(), scenario)));
    let nearest = steps.min_by_key(|(known, _)| edit_distance(known, step));
    match nearest {
        Some((known, scenario)) if known.eq_ignore_ascii_case(step) => Ok(scenario.toml),
        nearest => Err(UnknownScenario {
            name: name.to_owned(),
            closest: nearest
                .map_or_else(|| alias.to_owned(), |(known, _)| format!("{alias}/{known}")),
            reason: None,
        }),
    }
}

fn entry(&File { name, alias, toml }: &File) -> Option<Entry> {
    let document = load(toml, name).ok()?;
    Some(Entry {
        name,
        alias,
        summary: document.scenarios.first()?.summary.clone(),
        steps: document
            .scenarios
            .iter()
            .filter_map(step_name)
            .map(str::to_owned)
            .collect(),
        toml,
    })
}

fn step_name(scenario: &Scenario) -> Option<&str> {
    scenario.name.split_once('/').map(|(_, step)| step)
}

fn file_of(name: &str) -> Option<&'static File> {
    FILES
        .iter()
        .find(|file| file.name.eq_ignore_ascii_case(name) || file.alias.eq_ignore_ascii_case(name))
}

/// Whether a file is the scenario that a name with numbers describes.
fn is_named(file: &File, named: Named) -> bool {
    grammar::parse(file.name) == Some(Ok(named))
}

fn open(name: &str, toml: &str) -> Result<Document, UnknownScenario> {
    load(toml, name).map_err(|error| {
        let problems = error.0.into_iter();
        let messages: Vec<String> = problems.map(|problem| problem.message).collect();
        unknown(name, Some(messages.join("; ")))
    })
}

fn unknown(name: &str, reason: Option<String>) -> UnknownScenario {
    let distance =
        |file: &&File| edit_distance(file.alias, name).min(edit_distance(file.name, name));
    let closest = FILES.iter().min_by_key(distance);
    UnknownScenario {
        name: name.to_owned(),
        closest: closest.map_or_else(String::new, |file| file.alias.to_owned()),
        reason,
    }
}

fn explanation(name: &str, closest: &str, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("'{name}' is not a scenario: {reason}"),
        None => format!(
            "no scenario named '{name}'; did you mean '{closest}'? (`thrum bench scenarios` lists them)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::BASIC_SET;
    use super::*;

    #[test]
    fn names_are_found_in_full_and_short_form() {
        for (full, short) in [
            ("singlenode-conn-tcp-10K-100", "conn-tcp-10k-100"),
            ("singlenode-p2p-1K-1K-1K-1K", "p2p-1K"),
            ("singlenode-fanout-1-1K-1-1K", "FANOUT-1-1K"),
            ("singlenode-sharedsub-1K-5-1K-1K", "sharedsub-1K-5"),
            ("singlenode-fanout-5-1000-5-250K", "fanout-5-1000-5-250K"),
        ] {
            assert_eq!(find(full).unwrap(), find(short).unwrap());
            assert_eq!(find(short).unwrap().name, full);
        }
    }

    #[test]
    fn a_misspelt_name_gets_the_closest_one() {
        assert_eq!(find("p2p-1000x").unwrap_err().closest, "p2p-1K");
        assert_eq!(find("shared-1K-5").unwrap_err().closest, "sharedsub-1K-5");
        assert_eq!(
            find("conn-10K-100").unwrap_err().closest,
            "conn-tcp-10K-100"
        );
        assert_eq!(
            find("docs-fanin/11K").unwrap_err().to_string(),
            "no scenario named 'docs-fanin/11K'; did you mean 'docs-fanin/10K'? (`thrum bench scenarios` lists them)"
        );
    }

    #[test]
    fn the_basic_set_is_in_the_catalogue() {
        for name in BASIC_SET {
            assert!(find(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn names_with_other_numbers_are_scenarios_too() {
        let scenario = find("fanout-2-100-2-20K").unwrap();
        assert_eq!((scenario.publishers(), scenario.subscribers()), (2, 100));
        assert!((scenario.offered_rate() - 200.0).abs() < 1e-9);
        assert_eq!(scenario.name, "singlenode-fanout-2-100-2-20K");
        let scenario = find("sharesub-10-5-100-100").unwrap();
        assert_eq!(scenario.alias, "sharedsub-10-5-100-100");
        assert!((scenario.offered_rate() - 100.0).abs() < 1e-9);
        let scenario = find("conn-tcp-5K-500").unwrap();
        assert_eq!((scenario.clients(), scenario.connect_rate), (5_000, 500));
    }

    #[test]
    fn names_that_write_the_same_numbers_are_the_same_scenario() {
        for (typed, name) in [
            ("p2p-1000", "p2p-1K"),
            ("p2p-1000-1000-1K-1000", "p2p-1K"),
            ("fanout-5-1K-5-250000", "fanout-5-1000-5-250K"),
            ("sharesub-1K-5-1K-1K", "sharedsub-1K-5"),
        ] {
            assert_eq!(find(typed).unwrap(), find(name).unwrap(), "{typed}");
        }
    }

    #[test]
    fn numbers_that_cannot_be_are_explained() {
        assert_eq!(
            find("p2p-2-1-2-2").unwrap_err().to_string(),
            "'p2p-2-1-2-2' is not a scenario: each message is received once: 2 publishers need 2 subscribers, not 1"
        );
        assert_eq!(
            find("p2p-6M").unwrap_err().to_string(),
            "'p2p-6M' is not a scenario: groups: 12000000 clients in all, 10000000 is the limit"
        );
    }

    #[test]
    fn a_scenario_without_steps_has_none() {
        let error = find("p2p-1K/1").unwrap_err();
        assert_eq!(error.closest, "p2p-1K");
    }

    #[test]
    fn the_file_of_a_name_can_be_loaded_with_changes() {
        let sets = [("groups.publishers.publish.qos".to_owned(), "0".to_owned())];
        for (name, scenarios) in [("p2p-7", 1), ("docs-fanin", 5), ("docs-fanin/20K", 1)] {
            let toml = find_toml(name).unwrap();
            let document = super::super::load_with(&toml, name, &sets).unwrap();
            assert_eq!(document.scenarios.len(), scenarios, "{name}");
            let mut qos = document.scenarios.iter().map(Scenario::delivery_qos);
            assert!(
                qos.all(|qos| qos == Some(thrum_codec::QoS::AtMostOnce)),
                "{name}"
            );
        }
    }

    #[test]
    fn a_sweep_is_a_document_and_each_step_a_scenario() {
        assert_eq!(find_document("docs-fanin").unwrap().scenarios.len(), 5);
        assert_eq!(
            find("docs-fanin").unwrap_err().to_string(),
            "'docs-fanin' is not a scenario: it is a sweep of 5 steps, one of them is 'docs-fanin/10K'"
        );
        assert_eq!(find("DOCS-fanin/20k").unwrap().name, "docs-fanin/20K");
    }
}
