//! The built-in scenarios by name.

use std::time::Duration;

use super::{Scenario, Stages};

/// Keep alive of the published benchmarks.
pub(super) const KEEP_ALIVE_SECONDS: u16 = 300;

/// Connections per second where the scenario does not name a rate: 1 000 clients in one second.
pub(super) const CONNECT_RATE: u32 = 1_000;

/// A minute is long enough for p99.9 of 1 000 messages/s; the published runs take 30 minutes (`--duration 30m`).
pub(super) const STAGES: Stages = Stages {
    warm_up: Duration::from_secs(5),
    hold: Duration::from_mins(1),
    drain: Duration::from_secs(5),
};

/// The Basic Set of the open MQTT benchmarks, in its order.
pub const BASIC_SET: [&str; 4] = [
    "conn-tcp-10K-100",
    "fanout-1-1K",
    "p2p-1K",
    "sharedsub-1K-5",
];

/// A name that no built-in scenario has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no scenario named '{name}'; did you mean '{closest}'? (`thrum bench scenarios` lists them)"
)]
pub struct UnknownScenario {
    /// As asked for.
    pub name: String,
    /// The most similar name.
    pub closest: String,
}

/// All built-in scenarios.
pub fn catalogue() -> Vec<Scenario> {
    vec![
        super::conn::conn_tcp_10k_100(),
        super::fanout::fanout_1_1k(),
        super::p2p::p2p_1k(),
        super::sharedsub::sharedsub_1k_5(),
        super::fanout::fanout_5_1000_5_250k(),
    ]
}

/// Finds a scenario by its full name or its alias, in any case.
///
/// # Errors
/// No such name; the error proposes the closest one.
pub fn find(name: &str) -> Result<Scenario, UnknownScenario> {
    let mut closest = (usize::MAX, String::new());
    for scenario in catalogue() {
        if scenario.name.eq_ignore_ascii_case(name) || scenario.alias.eq_ignore_ascii_case(name) {
            return Ok(scenario);
        }
        let distance =
            edit_distance(&scenario.alias, name).min(edit_distance(&scenario.name, name));
        if distance < closest.0 {
            closest = (distance, scenario.alias);
        }
    }
    Err(UnknownScenario {
        name: name.to_owned(),
        closest: closest.1,
    })
}

/// Levenshtein distance, ignoring case.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, wanted) in left.to_lowercase().chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, &found) in right.iter().enumerate() {
            let substitution = diagonal + usize::from(found != wanted);
            diagonal = row[column + 1];
            row[column + 1] = substitution.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
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
        assert_eq!(find("p2p-1000").unwrap_err().closest, "p2p-1K");
        assert_eq!(find("shared-1K-5").unwrap_err().closest, "sharedsub-1K-5");
        assert_eq!(
            find("conn-10K-100").unwrap_err().closest,
            "conn-tcp-10K-100"
        );
    }

    #[test]
    fn the_basic_set_is_in_the_catalogue() {
        for name in BASIC_SET {
            assert!(find(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn parameters_are_those_of_the_published_benchmarks() {
        let lines: Vec<String> = catalogue()
            .iter()
            .map(|scenario| {
                format!(
                    "{} {:?} clients {} connect {}/s pubs {} subs {} offered {}/s qos {:?} payload {:?}",
                    scenario.alias,
                    scenario.version,
                    scenario.clients(),
                    scenario.connect_rate,
                    scenario.publishers(),
                    scenario.subscribers(),
                    scenario.offered_rate(),
                    scenario.delivery_qos(),
                    scenario.payload_bytes(),
                )
            })
            .collect();
        assert_eq!(
            lines,
            [
                "conn-tcp-10K-100 V311 clients 10000 connect 100/s pubs 0 subs 0 offered 0/s qos None payload None",
                "fanout-1-1K V311 clients 1001 connect 1000/s pubs 1 subs 1000 offered 1/s qos Some(AtLeastOnce) payload Some(16)",
                "p2p-1K V311 clients 2000 connect 1000/s pubs 1000 subs 1000 offered 1000/s qos Some(AtLeastOnce) payload Some(16)",
                "sharedsub-1K-5 V5 clients 1005 connect 1000/s pubs 1000 subs 5 offered 1000/s qos Some(AtLeastOnce) payload Some(16)",
                "fanout-5-1000-5-250K V311 clients 1005 connect 1000/s pubs 5 subs 1000 offered 250/s qos Some(AtLeastOnce) payload Some(16)",
            ]
        );
        for scenario in catalogue() {
            assert_eq!(scenario.keep_alive, 300, "{}", scenario.name);
        }
    }
}
