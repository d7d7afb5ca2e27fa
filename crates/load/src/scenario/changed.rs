//! The changes of the command line to a scenario, named in its summary, which describes the
//! unchanged file.

use thrum_figures::{count, figure, span};
use toml_edit::Value;

use super::words::{per_second, qos_text};
use super::{Overrides, Scenario};

/// Before the changes in a summary.
const OPEN: &str = " (changed: ";

/// Most characters of a value that are shown.
const VALUE_MAX: usize = 40;

/// A summary with changes added. An empty one stays empty: nothing in it could be wrong.
pub(super) fn noted(summary: &str, changes: &[String]) -> String {
    if summary.is_empty() || changes.is_empty() {
        return summary.to_owned();
    }
    let changes = changes.join(", ");
    match summary.strip_suffix(')') {
        Some(before) if before.contains(OPEN) => format!("{before}, {changes})"),
        _ => format!("{summary}{OPEN}{changes})"),
    }
}

/// A changed key; possible secrets and composite values are not shown.
pub(super) fn of_set(key: &str, value: &Value) -> Option<String> {
    let last = key.rsplit('.').next().unwrap_or(key);
    let text = match value {
        _ if matches!(key, "name" | "alias" | "summary") => return None,
        _ if last == "password" => return Some(key.to_owned()),
        Value::String(text) => text.value().clone(),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => value.to_string(),
        Value::Datetime(_) | Value::Array(_) | Value::InlineTable(_) => {
            return Some(key.to_owned());
        }
    };
    let shown: String = text.trim().chars().take(VALUE_MAX).collect();
    Some(format!("{key} = {shown}"))
}

impl Overrides {
    /// Their changes to a scenario, in the order of the command line's help.
    pub(super) fn words(&self, scenario: &Scenario) -> Vec<String> {
        let publishes = scenario.publishers() > 0;
        let has_messages = publishes || scenario.subscribers() > 0;
        let clients = |clients: Option<u32>, kind| {
            clients.map(|clients| format!("{} {kind}", count(clients.into())))
        };
        let stage =
            |length: Option<_>, stage| length.map(|length| format!("{stage} {}", span(length)));
        let addresses = self.source_addresses.as_ref().map(|addresses| {
            let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            format!("source addresses {}", texts.join(" "))
        });
        let words = [
            self.scale
                .map(|factor| format!("clients and connect rate × {}", figure_exact(factor))),
            clients(self.publishers, "publishers"),
            clients(self.subscribers, "subscribers"),
            clients(self.connections, "connections"),
            self.rate
                .filter(|_| publishes)
                .map(|rate| format!("{} by each publisher", per_second(rate))),
            self.arrivals
                .filter(|_| publishes)
                .map(|arrivals| format!("{} arrivals", arrivals.text())),
            self.payload_bytes
                .filter(|_| publishes)
                .map(|bytes| format!("payload {} B", count(bytes.into()))),
            self.qos
                .filter(|_| has_messages)
                .map(|qos| qos_text(qos).to_owned()),
            self.connect_rate
                .map(|rate| format!("{} connections/s", count(rate.into()))),
            addresses,
            self.version
                .map(|version| format!("MQTT {}", version.name())),
            stage(self.warm_up, "warm-up"),
            stage(self.hold, "hold"),
            stage(self.drain, "drain"),
        ];
        words.into_iter().flatten().collect()
    }
}

/// A factor that two digits would make 0 has all of its digits.
fn figure_exact(factor: f64) -> String {
    if factor < 0.1 {
        factor.to_string()
    } else {
        figure(factor)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Rate, find, load, load_with};
    use super::*;

    #[test]
    fn the_summary_names_the_changes_of_the_command_line() {
        let overrides = Overrides {
            rate: Some(Rate::per_second(5)),
            publishers: Some(1_200),
            hold: Some(Duration::from_secs(3)),
            ..Overrides::default()
        };
        let scenario = find("p2p-1K").unwrap().with(&overrides).unwrap();
        let expected = "1 000 publishers, 1 message/s each to one subscriber of its own \
            (changed: 1 200 publishers, 5/s by each publisher, hold 3s";
        assert_eq!(scenario.summary, format!("{expected})"));
        let again = Overrides {
            scale: Some(0.05),
            ..Overrides::default()
        };
        let summary = scenario.with(&again).unwrap().summary;
        assert_eq!(
            summary,
            format!("{expected}, clients and connect rate × 0.05)")
        );
    }

    #[test]
    fn an_unchanged_scenario_keeps_its_summary() {
        assert_eq!(noted("", &["hold 3s".to_owned()]), "");
        assert_eq!(noted("text (of it)", &[]), "text (of it)");
        let scenario = find("p2p-1K").unwrap();
        let same = scenario.clone().with(&Overrides::default()).unwrap();
        assert_eq!(same.summary, scenario.summary);
        let of_messages = Overrides {
            rate: Some(Rate::per_second(5)),
            ..Overrides::default()
        };
        let idle = find("conn-tcp-10K-100").unwrap();
        let same = idle.clone().with(&of_messages).unwrap();
        assert_eq!(same.summary, idle.summary, "without publishers");
    }

    #[test]
    fn keys_that_were_set_are_named_without_their_secrets() {
        let text = "summary = \"s\"\n[groups.a]\nclients = 1\nsubscribe = { filter = \"t\" }\n";
        let sets = [
            ("groups.a.clients", "5"),
            ("groups.a.password", "hush"),
            ("name", "other"),
            ("groups.a.username", "u"),
            (
                "groups.b",
                "{ clients = 2, username = 'u', password = 'hush' }",
            ),
        ];
        let sets = sets.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let document = load_with(text, "a.toml", &sets).unwrap();
        let scenario = &document.scenarios[0];
        assert_eq!(
            scenario.summary,
            "s (changed: groups.a.clients = 5, groups.a.password, groups.a.username = u, groups.b)"
        );
        let repeated = load(&scenario.toml, "again").unwrap();
        assert_eq!(repeated.scenarios[0].summary, scenario.summary);
    }
}
