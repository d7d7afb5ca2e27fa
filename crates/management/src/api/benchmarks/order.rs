//! What a caller asks for, with every size checked.

use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::api::Problem;
use crate::api::request::SecretText;
use crate::program::{BenchmarkChange, BenchmarkOrder};

/// Bytes of a scenario: that of the catalogue that is longest has 2 KiB.
pub(super) const TOML_BYTES_MAX: usize = 256 * 1024;
/// Characters of names.
const NAME_CHARS_MAX: usize = 120;
/// Characters of a note.
const NOTE_CHARS_MAX: usize = 1_000;
/// Bytes of a URL, a user name and a password.
const TEXT_BYTES_MAX: usize = 1_024;
/// A change makes a rate at most so many times as high or as low.
const RATE_FACTOR_MAX: f64 = 10.0;
/// End of the name of a file, which `thrum bench` would read.
const FILE_ENDING: &str = ".toml";

/// A run to check or to start.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BenchmarkToRun {
    /// A name of the catalogue, or another one that `thrum bench run` takes. Either this or `toml`.
    scenario: Option<String>,
    /// A scenario of your own: it may name no password, file or command.
    #[schema(max_length = 262_144)]
    toml: Option<String>,
    /// The broker by `mqtt://`, `mqtts://`, `ws://`, `wss://` or `quic://`; this one if absent.
    target: Option<String>,
    /// Length of the measured part; the scenario's if absent.
    #[schema(exclusive_minimum = 0.0)]
    duration_secs: Option<f64>,
    /// About this many clients in all, in proportion; the scenario's if absent.
    #[schema(minimum = 1)]
    clients: Option<u32>,
    /// Messages per second of each publisher; the scenario's if absent.
    #[schema(exclusive_minimum = 0.0)]
    rate: Option<f64>,
    /// A name for people; that of the scenario if absent.
    #[schema(max_length = 120)]
    name: Option<String>,
    /// User name of all clients that the scenario gives none.
    username: Option<String>,
    /// Its password, which is neither kept nor shown.
    #[schema(value_type = Option<String>)]
    password: Option<SecretText>,
    /// A note, which is kept with the result.
    #[schema(max_length = 1000)]
    note: Option<String>,
}

impl BenchmarkToRun {
    /// What it starts, in a word.
    pub(super) fn shown_scenario(&self) -> &str {
        self.scenario.as_deref().unwrap_or("own scenario")
    }

    /// What the audit log has of it.
    pub(super) fn shown(&self) -> Value {
        json!({
            "target": self.target.as_deref().map(without_credentials),
            "scenario": self.scenario,
            "toml_bytes": self.toml.as_ref().map(String::len),
            "duration_secs": self.duration_secs,
            "clients": self.clients,
            "rate": self.rate,
            "name": self.name,
            "username": self.username,
        })
    }

    /// Checks the form; whether it can be done is for the check.
    pub(super) fn order(self, by: &str) -> Result<BenchmarkOrder, Problem> {
        match (&self.scenario, &self.toml) {
            (Some(scenario), None) => check_name(scenario)?,
            (None, Some(toml)) => check_bytes("toml", toml, TOML_BYTES_MAX)?,
            _ => {
                return Err(Problem::bad_request(
                    "give either scenario, a name, or toml, a scenario of your own",
                ));
            }
        }
        for (name, number) in [("duration_secs", self.duration_secs), ("rate", self.rate)] {
            let is_right = number.is_none_or(|number| number.is_finite() && number > 0.0);
            if !is_right {
                return Err(Problem::bad_request(format!("{name} is a number above 0")));
            }
        }
        if self.clients == Some(0) {
            return Err(Problem::bad_request("clients is a whole number from 1"));
        }
        for (name, text) in [("target", &self.target), ("username", &self.username)] {
            let text = text.as_deref().unwrap_or_default();
            check_bytes(name, text, TEXT_BYTES_MAX)?;
            check_line(name, text)?;
        }
        for (name, text, most) in [
            ("name", &self.name, NAME_CHARS_MAX),
            ("note", &self.note, NOTE_CHARS_MAX),
        ] {
            let text = text.as_deref().unwrap_or_default();
            if text.chars().count() > most {
                let what = format!("{name} has more than {most} characters");
                return Err(Problem::bad_request(what));
            }
            check_line(name, text)?;
        }
        let password = self.password.map(|SecretText(secret)| secret);
        if let Some(secret) = &password {
            let bytes = secret.expose();
            if bytes.len() > TEXT_BYTES_MAX || bytes.iter().any(u8::is_ascii_control) {
                return Err(Problem::bad_request(format!(
                    "password has at most {TEXT_BYTES_MAX} bytes and no control characters"
                )));
            }
            if self.username.is_none() {
                return Err(Problem::bad_request("password needs a username"));
            }
        }
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        Ok(BenchmarkOrder {
            scenario: self.scenario,
            toml: self.toml,
            target: given(self.target),
            duration_secs: self.duration_secs,
            clients: self.clients,
            rate: self.rate,
            name: given(self.name),
            username: given(self.username),
            password,
            note: given(self.note),
            by: by.to_owned(),
        })
    }
}

/// A change of a run under way: exactly one of these.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BenchmarkToChange {
    /// A factor for the rate of all publishers from now on: 1.1 is 10 % more.
    #[schema(minimum = 0.1, maximum = 10.0)]
    rate: Option<f64>,
    /// Whether nothing is sent for now.
    paused: Option<bool>,
    /// So many seconds more of the measured part.
    #[schema(exclusive_minimum = 0.0)]
    extend_secs: Option<f64>,
    /// A note, which is kept with the result.
    #[schema(min_length = 1, max_length = 1000)]
    note: Option<String>,
}

impl BenchmarkToChange {
    /// What the audit log has of it.
    pub(super) fn shown(&self) -> Value {
        match self {
            Self {
                rate: Some(rate), ..
            } => json!({ "rate": rate }),
            Self {
                paused: Some(paused),
                ..
            } => json!({ "paused": paused }),
            Self {
                extend_secs: Some(secs),
                ..
            } => json!({ "extend_secs": secs }),
            Self { note, .. } => json!({ "note": note }),
        }
    }

    /// Checks the form; whether the run takes it is for the run.
    pub(super) fn change(self) -> Result<BenchmarkChange, Problem> {
        let Self {
            rate,
            paused,
            extend_secs,
            note,
        } = self;
        match (rate, paused, extend_secs, note) {
            (Some(rate), None, None, None) => {
                if !(1.0 / RATE_FACTOR_MAX..=RATE_FACTOR_MAX).contains(&rate) {
                    return Err(Problem::bad_request(
                        "rate is a factor from 0.1 to 10: 1.1 is 10 % more",
                    ));
                }
                Ok(BenchmarkChange::Rate(rate))
            }
            (None, Some(paused), None, None) => Ok(if paused {
                BenchmarkChange::Pause
            } else {
                BenchmarkChange::Resume
            }),
            (None, None, Some(secs), None) => {
                if !(secs.is_finite() && secs > 0.0) {
                    return Err(Problem::bad_request("extend_secs is a number above 0"));
                }
                Ok(BenchmarkChange::Extend(secs))
            }
            (None, None, None, Some(note)) => {
                let length = note.chars().count();
                if note.trim().is_empty() || length > NOTE_CHARS_MAX {
                    return Err(Problem::bad_request(format!(
                        "note has 1 to {NOTE_CHARS_MAX} characters"
                    )));
                }
                check_line("note", &note)?;
                Ok(BenchmarkChange::Note(note))
            }
            _ => Err(Problem::bad_request(
                "give one of rate, paused, extend_secs and note",
            )),
        }
    }
}

/// A URL as far as it may be shown: what is in front of its host may be a password. The text may be
/// anything.
fn without_credentials(url: &str) -> String {
    let Some((before, host)) = url.rsplit_once('@') else {
        return url.to_owned();
    };
    match before.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://{host}"),
        None => host.to_owned(),
    }
}

/// A name never looks like an option or a file.
fn check_name(name: &str) -> Result<(), Problem> {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
    let begins = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    let is_file = name.to_ascii_lowercase().ends_with(FILE_ENDING);
    if begins && !is_file && name.len() <= NAME_CHARS_MAX && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(Problem::bad_request(
        "scenario is a name of GET /api/v1/benchmarks/scenarios, or one like p2p-200-200-200-200",
    ))
}

fn check_bytes(name: &str, text: &str, most: usize) -> Result<(), Problem> {
    if text.len() <= most {
        return Ok(());
    }
    Err(Problem::bad_request(format!(
        "{name} has more than {most} bytes"
    )))
}

fn check_line(name: &str, text: &str) -> Result<(), Problem> {
    if !text.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Problem::bad_request(format!(
        "{name} has control characters"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(body: &Value) -> Result<BenchmarkOrder, String> {
        let body: BenchmarkToRun =
            serde_json::from_value(body.clone()).map_err(|error| error.to_string())?;
        body.order("root").map_err(|problem| problem.detail)
    }

    #[test]
    fn a_change_is_one_and_within_its_limits() {
        let change = |body: Value| {
            let body: BenchmarkToChange = serde_json::from_value(body).unwrap();
            body.change().map_err(|problem| problem.detail)
        };
        for (body, expected) in [
            (json!({ "rate": 1.1 }), BenchmarkChange::Rate(1.1)),
            (json!({ "paused": true }), BenchmarkChange::Pause),
            (json!({ "paused": false }), BenchmarkChange::Resume),
            (json!({ "extend_secs": 30 }), BenchmarkChange::Extend(30.0)),
            (
                json!({ "note": "a fan" }),
                BenchmarkChange::Note("a fan".to_owned()),
            ),
        ] {
            assert_eq!(change(body), Ok(expected));
        }
        for wrong in [
            json!({}),
            json!({ "rate": 1.1, "paused": true }),
            json!({ "rate": 0 }),
            json!({ "rate": 11 }),
            json!({ "extend_secs": -1 }),
            json!({ "note": " " }),
            json!({ "note": "a\nb" }),
            json!({ "note": "x".repeat(1_001) }),
        ] {
            assert!(change(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_order_names_one_scenario() {
        let by_name = order(&json!({ "scenario": "docs-fanin/10K", "clients": 5 })).unwrap();
        assert_eq!(by_name.scenario.as_deref(), Some("docs-fanin/10K"));
        assert_eq!((by_name.clients, by_name.by.as_str()), (Some(5), "root"));
        assert!(order(&json!({ "toml": "x" })).is_ok());
        for wrong in [json!({}), json!({ "scenario": "a", "toml": "b" })] {
            assert!(order(&wrong).unwrap_err().contains("either"), "{wrong}");
        }
    }

    #[test]
    fn a_name_is_neither_an_option_nor_a_file() {
        for name in [
            "--set", "", "/etc/x", "x.toml", "x.TOML", "a b", "a;b", "../x",
        ] {
            assert!(order(&json!({ "scenario": name })).is_err(), "{name}");
        }
    }

    #[test]
    fn every_size_is_limited() {
        let long = "x".repeat(2_000);
        for (key, value) in [
            ("toml", json!("x".repeat(TOML_BYTES_MAX + 1))),
            ("target", json!(long)),
            ("target", json!("mqtt://a\nb")),
            ("name", json!(long)),
            ("note", json!(long)),
            ("username", json!(long)),
            ("duration_secs", json!(0)),
            ("rate", json!(-1)),
            ("clients", json!(0)),
            ("password", json!("p")),
            ("unknown", json!(1)),
        ] {
            let mut body = json!({ "toml": "x" });
            body[key] = value;
            assert!(order(&body).is_err(), "{key}");
        }
    }

    #[test]
    fn a_target_is_shown_without_its_credentials() {
        for (url, shown) in [
            ("mqtt://h:1883", "mqtt://h:1883"),
            ("mqtt://me:hidden@h", "mqtt://h"),
            ("wss://me:a@b/c@h/path", "wss://h/path"),
            ("me:hidden@h", "h"),
        ] {
            assert_eq!(without_credentials(url), shown);
        }
    }

    #[test]
    fn a_password_is_neither_shown_nor_printed() {
        let body = json!({ "scenario": "a", "username": "u", "password": "hidden one" });
        let body: BenchmarkToRun = serde_json::from_value(body).unwrap();
        let shown = format!("{} {body:?}", body.shown());
        let order = body.order("root").unwrap();
        let shown = format!("{shown} {order:?}");
        assert!(!shown.contains("hidden one"), "{shown}");
        let password = order.password.unwrap();
        assert_eq!(password.expose_str(), Some("hidden one"));
    }
}
