//! The words of `thrum bench` for an order. None of them is a password.

use thrum_access::Secret;
use thrum_management::BenchmarkOrder;
use thrum_transport::{Endpoint, EndpointError};

/// The file of a scenario of the caller, in the folder of the run.
pub(super) const SCENARIO_FILE: &str = "own-scenario.toml";
/// A scenario that is only checked.
const STANDARD_INPUT: &str = "-";
/// The folder in which `thrum bench` makes that of the run.
pub(super) const RESULTS_FOLDER: &str = "results";

/// The broker of a run, and who logs in there.
#[derive(Debug)]
pub(super) struct Aim {
    /// Without user name and password.
    pub(super) url: String,
    /// Its host and port, to be compared with those of the listeners.
    pub(super) endpoint: Endpoint,
    pub(super) username: Option<String>,
    pub(super) password: Option<Secret>,
}

impl Aim {
    /// Takes the URL of an order apart.
    ///
    /// # Errors
    /// It is no target.
    pub(super) fn of(order: &BenchmarkOrder, own: &str) -> Result<Self, EndpointError> {
        let mut endpoint = Endpoint::parse(order.target.as_deref().unwrap_or(own))?;
        let in_url = (endpoint.username.take(), endpoint.password.take());
        let (username, password) = match (&order.username, in_url) {
            (Some(username), _) => (Some(username.clone()), order.password.clone()),
            (None, (username, password)) => {
                (username, password.map(|text| Secret::from(text.as_str())))
            }
        };
        Ok(Self {
            url: endpoint.to_string(),
            endpoint,
            username,
            password,
        })
    }
}

/// The words that choose and change the scenario, for `check` and `run`.
fn scenario(order: &BenchmarkOrder, file: &str) -> Vec<String> {
    let name = order.scenario.as_deref().unwrap_or(file);
    let mut words = vec![name.to_owned()];
    let mut flag = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("--{name}={value}")));
    };
    flag(
        "duration",
        order.duration_secs.map(|secs| format!("{secs}s")),
    );
    flag("clients", order.clients.map(|clients| clients.to_string()));
    flag("rate", order.rate.map(|rate| format!("{rate}/s")));
    words
}

/// `thrum bench check`. A scenario of the caller is standard input. One with more clients is not
/// planned: a plan takes memory for each of them.
pub(super) fn check(order: &BenchmarkOrder, clients_max: u32) -> Vec<String> {
    let mut words = vec!["check".to_owned()];
    words.extend(scenario(order, STANDARD_INPUT));
    words.push(format!("--plan-up-to={clients_max}"));
    words.extend(["--confined", "--json"].map(str::to_owned));
    words
}

/// `thrum bench run`, in the folder of the run. A password is the first line of standard input, and
/// changes of the run are the lines after it.
pub(super) fn run(order: &BenchmarkOrder, aim: &Aim, threads: u32) -> Vec<String> {
    let mut words = vec!["run".to_owned()];
    words.extend(scenario(order, SCENARIO_FILE));
    words.push(format!("--target={}", aim.url));
    words.extend(
        aim.username
            .as_ref()
            .map(|name| format!("--username={name}")),
    );
    if aim.password.is_some() {
        words.push("--password-file=/dev/stdin".to_owned());
    }
    words.extend(order.note.as_ref().map(|note| format!("--note={note}")));
    words.push(format!("--threads={threads}"));
    words.push(format!("--out={RESULTS_FOLDER}"));
    words.extend(["--confined", "--progress=jsonl", "--changes"].map(str::to_owned));
    words
}

/// The command that makes the same run elsewhere, for people.
pub(super) fn shown(order: &BenchmarkOrder, aim: &Aim) -> String {
    let mut words: Vec<String> = ["thrum", "bench", "run"].map(str::to_owned).into();
    words.extend(scenario(order, "run.toml"));
    words.push(format!("--target={}", aim.url));
    words.extend(
        aim.username
            .as_ref()
            .map(|name| format!("--username={name}")),
    );
    if aim.password.is_some() {
        words.push("--password-file=FILE".to_owned());
    }
    let words: Vec<String> = words.into_iter().map(quoted).collect();
    words.join(" ")
}

/// A word without characters that a shell interprets.
fn quoted(word: String) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@%+".contains(letter);
    if word.chars().all(is_plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An order of a scenario of the catalogue.
    pub(in crate::command::serve::benchmarks) fn order(scenario: &str) -> BenchmarkOrder {
        BenchmarkOrder {
            scenario: Some(scenario.to_owned()),
            toml: None,
            target: None,
            duration_secs: None,
            clients: None,
            rate: None,
            name: None,
            username: None,
            password: None,
            note: None,
            by: "root".to_owned(),
        }
    }

    const OWN: &str = "mqtt://127.0.0.1:1883";

    #[test]
    fn an_order_becomes_words_and_the_same_command_for_people() {
        let order = BenchmarkOrder {
            duration_secs: Some(2.5),
            clients: Some(50),
            rate: Some(0.5),
            note: Some("it's new".to_owned()),
            ..order("devices")
        };
        let aim = Aim::of(&order, OWN).unwrap();
        assert_eq!(
            check(&order, 70).join(" "),
            "check devices --duration=2.5s --clients=50 --rate=0.5/s --plan-up-to=70 --confined \
             --json"
        );
        assert_eq!(
            run(&order, &aim, 2).join(" "),
            "run devices --duration=2.5s --clients=50 --rate=0.5/s --target=mqtt://127.0.0.1:1883 \
             --note=it's new --threads=2 --out=results --confined --progress=jsonl \
             --changes"
        );
        assert_eq!(
            shown(&order, &aim),
            "thrum bench run devices --duration=2.5s --clients=50 --rate=0.5/s \
             --target=mqtt://127.0.0.1:1883"
        );
    }

    #[test]
    fn a_password_is_in_no_word() {
        let in_url = BenchmarkOrder {
            target: Some("mqtt://me:hidden@h".to_owned()),
            ..order("devices")
        };
        let alone = BenchmarkOrder {
            username: Some("me".to_owned()),
            password: Some(Secret::from("hidden")),
            ..order("devices")
        };
        for order in [in_url, alone] {
            let aim = Aim::of(&order, OWN).unwrap();
            assert_eq!(aim.password.as_ref().unwrap().expose_str(), Some("hidden"));
            assert_eq!(aim.username.as_deref(), Some("me"));
            let words = format!(
                "{:?} {:?} {}",
                check(&order, 1),
                run(&order, &aim, 1),
                shown(&order, &aim)
            );
            assert!(!words.contains("hidden"), "{words}");
            assert!(words.contains("--password-file=/dev/stdin"), "{words}");
        }
    }

    #[test]
    fn a_scenario_of_the_caller_is_a_file() {
        let own = BenchmarkOrder {
            scenario: None,
            toml: Some(String::new()),
            ..order("")
        };
        let aim = Aim::of(&own, OWN).unwrap();
        assert_eq!(run(&own, &aim, 1)[1], SCENARIO_FILE);
        assert!(shown(&own, &aim).starts_with("thrum bench run run.toml "));
        assert_eq!(quoted("a b'c".to_owned()), r"'a b'\''c'");
    }
}
