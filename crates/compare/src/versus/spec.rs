//! The file that describes how brokers start, and its placeholders.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use thrum_settings::problem::{Place, Problem, Source};

/// The brokers that are known without a file.
pub const BUILT_IN: &str = include_str!("brokers.toml");

/// Most brokers of one file.
const BROKERS_MAX: usize = 64;

/// Most targets of one broker, as many as it has ports.
const TARGETS_MAX: usize = 3;

/// Name of the program that stands for this one.
const OWN_PROGRAM: &str = "thrum";

/// Searched besides `PATH`: servers live there, and the `PATH` of most people lacks them.
const SERVER_FOLDERS: [&str; 2] = ["/usr/local/sbin", "/usr/sbin"];

/// A file of brokers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokerFile {
    /// In the order in which they take turns.
    #[serde(rename = "broker", default)]
    pub brokers: Vec<Broker>,
}

/// The start and stop of one broker; brokers.toml explains each field.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "each field is that of the file")]
pub struct Broker {
    pub name: String,
    pub programs: Vec<String>,
    pub launch: Vec<String>,
    pub config: Option<String>,
    pub config_name: Option<String>,
    pub version: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub port: Option<u16>,
    pub targets: BTreeMap<String, String>,
    pub ready_seconds: Option<u64>,
    pub stop: StopSignal,
    pub stop_seconds: Option<u64>,
    pub only_by_name: bool,
    pub obtain: String,
    pub license: String,
    pub note: String,
}

/// The signal that asks a broker to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "each is the signal of that name")]
pub enum StopSignal {
    #[default]
    Term,
    Int,
    Quit,
}

/// A broker whose program is on this machine.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Its specification.
    pub broker: Broker,
    /// Its program.
    pub program: PathBuf,
}

/// Why a file of brokers cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Not TOML, or a field that is none.
    #[error("{0}")]
    Syntax(Problem),
    /// A broker lacks what it needs.
    #[error("broker {name} in {origin}: {problem}")]
    Broker {
        /// Name of the file.
        origin: String,
        /// Name of the broker.
        name: String,
        /// The error.
        problem: String,
    },
    /// A name that no broker has.
    #[error("no broker named '{name}' in {origin}; it has {known}")]
    Unknown {
        /// Name of the file.
        origin: String,
        /// The requested name.
        name: String,
        /// All names.
        known: String,
    },
}

impl BrokerFile {
    /// Reads a file of brokers; `origin` is its name for messages.
    ///
    /// # Errors
    /// The file is invalid, or a broker could not be started.
    pub fn parse(text: &str, origin: &str) -> Result<Self, SpecError> {
        let file: Self = toml_edit::de::from_str(text)
            .map_err(|error| SpecError::Syntax(located(&error, text, origin)))?;
        let mut names = BTreeSet::new();
        for broker in &file.brokers {
            let problem = broker.problem().or_else(|| {
                (!names.insert(&broker.name)).then(|| "there are two of that name".to_owned())
            });
            if let Some(problem) = problem {
                return Err(SpecError::Broker {
                    origin: origin.to_owned(),
                    name: broker.name.clone(),
                    problem,
                });
            }
        }
        if file.brokers.is_empty() || file.brokers.len() > BROKERS_MAX {
            let message = format!("a brokers file has 1 to {BROKERS_MAX} tables [[broker]]");
            return Err(SpecError::Syntax(Problem::general(origin, message)));
        }
        Ok(file)
    }

    /// Keeps the brokers that run by default.
    #[must_use]
    pub fn by_default(mut self) -> Self {
        self.brokers.retain(|broker| !broker.only_by_name);
        self
    }

    /// Keeps only the brokers of these names, in this order.
    ///
    /// # Errors
    /// A name that is not there.
    pub fn only(self, names: &[String], origin: &str) -> Result<Self, SpecError> {
        let known = || {
            let names: Vec<&str> = self
                .brokers
                .iter()
                .map(|known| known.name.as_str())
                .collect();
            names.join(", ")
        };
        let mut brokers = Vec::new();
        for name in names {
            let found = self.brokers.iter().find(|known| known.name == *name);
            brokers.push(found.cloned().ok_or_else(|| SpecError::Unknown {
                origin: origin.to_owned(),
                name: name.clone(),
                known: known(),
            })?);
        }
        Ok(Self { brokers })
    }
}

impl Broker {
    fn problem(&self) -> Option<String> {
        let has_config_place = self.launch.iter().any(|word| word.contains("{config}"));
        if self.name.is_empty() || self.name.contains(['/', ' ']) {
            Some("`name` must be a word".to_owned())
        } else if self.programs.is_empty() || self.launch.is_empty() {
            Some("`programs` and `launch` are needed".to_owned())
        } else if has_config_place && self.config.is_none() {
            Some("`launch` names {config}, but there is no `config`".to_owned())
        } else if self.targets.len() > TARGETS_MAX {
            Some(format!("`targets` has at most {TARGETS_MAX} names"))
        } else {
            None
        }
    }

    /// The ports of which it cannot be told another one.
    pub(super) fn fixed_ports(&self) -> Vec<u16> {
        let of_targets = self.targets.values();
        let of_targets = of_targets.filter_map(|port| port.parse().ok());
        self.port.into_iter().chain(of_targets).collect()
    }

    /// Its program in the folders of `path` (the variable `PATH`); `own` is the program that runs
    /// now.
    pub fn find(&self, path: &str, own: &Path) -> Option<PathBuf> {
        let find = |name: &String| {
            if name == OWN_PROGRAM {
                return Some(own.to_owned());
            }
            if name.contains('/') {
                return Some(PathBuf::from(name)).filter(|file| is_program(file));
            }
            let folders = path.split(':').filter(|folder| !folder.is_empty());
            let mut files = folders
                .chain(SERVER_FOLDERS)
                .map(|folder| Path::new(folder).join(name));
            files.find(|file| is_program(file))
        };
        self.programs.iter().find_map(find)
    }
}

impl Installed {
    /// Its start for a reader, wherever it is installed: the command line with its own environment
    /// and the configuration file, placeholders as they are.
    pub fn start_text(&self) -> String {
        let broker = &self.broker;
        let program = self.program.file_name().unwrap_or(self.program.as_os_str());
        let fill = |text: &str| text.replace("{program}", &program.to_string_lossy());
        let env = broker.env.iter();
        let env = env.map(|(name, value)| format!("{name}={}", fill(value)));
        let words = broker.launch.iter().map(|word| {
            let word = fill(word);
            if word.contains(char::is_whitespace) {
                format!("'{}'", word.replace('\n', "\\n"))
            } else {
                word
            }
        });
        let mut text = env.chain(words).collect::<Vec<_>>().join(" ");
        if let Some(config) = &broker.config {
            text.push_str("\n\n");
            text.push_str(fill(config.trim()).as_str());
        }
        text
    }
}

/// The parser's error at its place in the file.
pub(crate) fn located(error: &toml_edit::de::Error, text: &str, origin: &str) -> Problem {
    let message = error.message().replace('\n', ", ");
    let Some(span) = error.span() else {
        return Problem::general(origin, message);
    };
    let source = Arc::new(Source::new(PathBuf::from(origin), text.to_owned()));
    Problem::at(Place::new(&source, span), message)
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = std::fs::metadata(file);
    metadata.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The values of the placeholders in a broker's texts.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) program: String,
    pub(super) dir: String,
    pub(super) config: String,
    pub(super) ports: [u16; 3],
    pub(super) clients: u32,
}

impl Places {
    /// A text with its places filled in; other braces stay as they are.
    pub(super) fn fill(&self, text: &str) -> String {
        let [port, port2, port3] = self.ports.map(|port| port.to_string());
        let clients = self.clients.to_string();
        let places = [
            ("{program}", &self.program),
            ("{dir}", &self.dir),
            ("{config}", &self.config),
            ("{port}", &port),
            ("{port2}", &port2),
            ("{port3}", &port3),
            ("{clients}", &clients),
        ];
        let mut filled = text.to_owned();
        for (place, value) in places {
            filled = filled.replace(place, value);
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_file_has_the_brokers_that_people_compare() {
        let file = BrokerFile::parse(BUILT_IN, "built in").unwrap();
        let names: Vec<&str> = file
            .brokers
            .iter()
            .map(|broker| broker.name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "thrum",
                "mosquitto",
                "emqx",
                "nanomq",
                "vernemq",
                "flashmq",
                "hivemq-ce",
                "rumqttd",
                "rmqtt",
                "nats",
                "mochi-mqtt",
                "relay"
            ]
        );
        for broker in &file.brokers {
            assert!(
                !broker.license.is_empty() && !broker.obtain.is_empty(),
                "{}",
                broker.name
            );
        }
    }

    #[test]
    fn every_built_in_broker_takes_a_port_or_names_its_own() {
        for broker in BrokerFile::parse(BUILT_IN, "built in").unwrap().brokers {
            let texts = broker
                .launch
                .iter()
                .chain(&broker.config)
                .chain(broker.env.values());
            let is_told = texts.into_iter().any(|text| text.contains("{port}"));
            assert!(is_told != broker.port.is_some(), "{}", broker.name);
        }
    }

    #[test]
    fn the_start_for_a_reader_has_no_paths_of_this_machine() {
        let installed = Installed {
            broker: Broker {
                launch: ["sh", "-c", "{program} -c {config} & wait"]
                    .map(str::to_owned)
                    .to_vec(),
                config: Some("\nlistener {port}\ndir {dir}/data\n".to_owned()),
                env: [("DATA".to_owned(), "{dir}".to_owned())].into(),
                ..Broker::default()
            },
            program: "/some/where/mosquitto".into(),
        };
        assert_eq!(
            installed.start_text(),
            "DATA={dir} sh -c 'mosquitto -c {config} & wait'\n\nlistener {port}\ndir {dir}/data"
        );
    }

    #[test]
    fn places_are_filled_in_and_other_braces_stay() {
        let places = Places {
            program: "/bin/b".to_owned(),
            dir: "/tmp/d".to_owned(),
            config: "/tmp/d/c".to_owned(),
            ports: [1, 2, 3],
            clients: 100,
        };
        let filled = places.fill("{program} {config} {port} {port2} mqtt { max: {clients} }");
        assert_eq!(filled, "/bin/b /tmp/d/c 1 2 mqtt { max: 100 }");
    }

    #[track_caller]
    fn check_refused(text: &str, part: &str) {
        let message = BrokerFile::parse(text, "b.toml").unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }

    #[test]
    fn mistakes_in_a_file_are_named() {
        check_refused("", "1 to 64 tables");
        check_refused(
            "[[broker]]\nname = 'a'\nlanch = []",
            "b.toml:3:1: unknown field `lanch`",
        );
        check_refused("[[broker]]\nname = 'a b'", "`name` must be a word");
        check_refused("[[broker]]\nname = 'a'", "`programs` and `launch`");
        let broker = "[[broker]]\nname = 'a'\nprograms = ['a']\nlaunch = ['a']\n";
        check_refused(&broker.repeat(2), "two of that name");
        let no_config = broker.replace("launch = ['a']", "launch = ['a', '{config}']");
        check_refused(&no_config, "there is no `config`");
    }

    #[test]
    fn a_choice_of_brokers_keeps_its_order() {
        let file = BrokerFile::parse(BUILT_IN, "built in").unwrap();
        let names = ["nats".to_owned(), "thrum".to_owned()];
        let chosen = file.clone().only(&names, "built in").unwrap();
        assert_eq!(chosen.brokers[0].name, "nats");
        let error = file.only(&["x".to_owned()], "built in").unwrap_err();
        assert!(error.to_string().contains("it has thrum, mosquitto"));
    }

    #[test]
    fn the_reference_relay_runs_only_by_name() {
        let file = BrokerFile::parse(BUILT_IN, "built in").unwrap();
        let relay = file.clone().only(&["relay".to_owned()], "built in");
        assert_eq!(relay.unwrap().brokers.len(), 1);
        let known = file.brokers.len();
        let by_default = file.by_default().brokers;
        assert_eq!(by_default.len(), known - 1);
        assert!(by_default.iter().all(|broker| broker.name != "relay"));
    }

    #[test]
    fn programs_are_looked_for_in_the_path_and_thrum_is_this_one() {
        let broker = |program: &str| Broker {
            programs: vec![program.to_owned()],
            ..Broker::default()
        };
        let own = Path::new("/x/thrum");
        assert_eq!(broker("thrum").find("", own), Some(own.to_owned()));
        assert_eq!(broker("sh").find("/bin", own), Some("/bin/sh".into()));
        assert_eq!(broker("/bin/sh").find("", own), Some("/bin/sh".into()));
        assert_eq!(broker("no-such-broker").find("/bin", own), None);
    }
}
