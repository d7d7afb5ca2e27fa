//! The options of `emqtt_bench conn`, `sub` and `pub`, versions 0.3 to 0.6.

use super::ImportError;

/// The kind of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Conn,
    Sub,
    Publish,
}

/// Whether a value follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Value,
    /// Nothing, `true` or `false`.
    Flag,
}

/// Long names, their short ones, and what they take.
const OPTIONS: [(&str, Option<char>, Takes); 52] = [
    ("host", Some('h'), Takes::Value),
    ("port", Some('p'), Takes::Value),
    ("version", Some('V'), Takes::Value),
    ("count", Some('c'), Takes::Value),
    ("connrate", Some('R'), Takes::Value),
    ("interval", Some('i'), Takes::Value),
    ("interval_of_msg", Some('I'), Takes::Value),
    ("ifaddr", None, Takes::Value),
    ("prefix", None, Takes::Value),
    ("shortids", None, Takes::Flag),
    ("startnumber", Some('n'), Takes::Value),
    ("num-retry-connect", None, Takes::Value),
    ("reconnect", None, Takes::Value),
    ("ssl", Some('S'), Takes::Flag),
    ("ssl-version", None, Takes::Value),
    ("cacertfile", None, Takes::Value),
    ("certfile", None, Takes::Value),
    ("keyfile", None, Takes::Value),
    ("ciphers", None, Takes::Value),
    ("signature-algs", None, Takes::Value),
    ("keyex-algs", None, Takes::Value),
    ("quic", None, Takes::Value),
    ("ws", None, Takes::Flag),
    ("load-qst", None, Takes::Value),
    ("username", Some('u'), Takes::Value),
    ("password", Some('P'), Takes::Value),
    ("keepalive", Some('k'), Takes::Value),
    ("clean", Some('C'), Takes::Flag),
    ("session-expiry", Some('x'), Takes::Value),
    ("lowmem", Some('l'), Takes::Flag),
    ("force-major-gc-interval", None, Takes::Value),
    ("qoe", Some('Q'), Takes::Value),
    ("qoelog", None, Takes::Value),
    ("prometheus", None, Takes::Flag),
    ("restapi", None, Takes::Value),
    ("log_to", None, Takes::Value),
    ("dist", Some('d'), Takes::Flag),
    ("topic", Some('t'), Takes::Value),
    ("payload-hdrs", None, Takes::Value),
    ("size", Some('s'), Takes::Value),
    ("message", Some('m'), Takes::Value),
    ("topics-payload", None, Takes::Value),
    ("qos", Some('q'), Takes::Value),
    ("retain", Some('r'), Takes::Flag),
    ("limit", Some('L'), Takes::Value),
    ("inflight", Some('F'), Takes::Value),
    ("wait-before-publishing", Some('w'), Takes::Flag),
    ("max-random-wait", None, Takes::Value),
    ("min-random-wait", None, Takes::Value),
    ("retry-interval", None, Takes::Value),
    ("keep-connected", None, Takes::Flag),
    ("help", None, Takes::Flag),
];

/// Names that earlier versions gave to the same options.
const OLD_NAMES: [(&str, &str); 3] = [
    ("conn_rate", "connrate"),
    ("wait_before_publishing", "wait-before-publishing"),
    ("retry_interval", "retry-interval"),
];

/// One command line, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) kind: Kind,
    /// Name and value; a flag's value is `true` or `false`.
    pub(super) options: Vec<(&'static str, String)>,
}

impl Line {
    /// Reads the words of a command; the part before `conn`, `sub` or `pub` is the program.
    pub(super) fn parse(words: &[String]) -> Result<Self, ImportError> {
        let kinds = [
            ("conn", Kind::Conn),
            ("sub", Kind::Sub),
            ("pub", Kind::Publish),
        ];
        let found = words.iter().enumerate().find_map(|(index, word)| {
            let (_, kind) = kinds.iter().find(|(name, _)| is_command(word, name))?;
            Some((index, *kind))
        });
        let (index, kind) = found.ok_or_else(|| ImportError::NoCommand(words.join(" ")))?;
        let mut words = words.get(index + 1..).unwrap_or_default().iter().peekable();
        let mut options = Vec::new();
        while let Some(word) = words.next() {
            let (name, takes, attached) = option(word)?;
            let value = match (takes, attached) {
                (_, Some(attached)) => attached,
                (Takes::Value, None) => {
                    let value = words.next().cloned();
                    value.ok_or_else(|| ImportError::NoValue(word.clone()))?
                }
                (Takes::Flag, None) => words
                    .next_if(|next| matches!(next.as_str(), "true" | "false"))
                    .cloned()
                    .unwrap_or_else(|| "true".to_owned()),
            };
            options.push((name, value));
        }
        Ok(Self { kind, options })
    }

    /// The value of an option; of several the first counts.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.value(name) == Some("true")
    }

    /// A number, or the default of the option.
    pub(super) fn number(&self, name: &'static str, default: u64) -> Result<u64, ImportError> {
        let Some(text) = self.value(name) else {
            return Ok(default);
        };
        text.parse().map_err(|_| ImportError::Malformed {
            option: shown(name),
            value: text.to_owned(),
            expected: "a whole number",
        })
    }
}

/// `pub`, or `emqtt_bench_pub` as the program was called once.
fn is_command(word: &str, name: &str) -> bool {
    let program = word.rsplit('/').next().unwrap_or(word);
    word == name || program.strip_prefix("emqtt_bench_") == Some(name)
}

/// An option as people write it: `-c/--count`.
pub(super) fn shown(name: &str) -> String {
    let short = OPTIONS
        .iter()
        .find(|(long, ..)| *long == name)
        .and_then(|(_, short, _)| *short);
    short.map_or_else(|| format!("--{name}"), |short| format!("-{short}/--{name}"))
}

/// The option of a word, and the value that is part of the word.
fn option(word: &str) -> Result<(&'static str, Takes, Option<String>), ImportError> {
    let unknown = || ImportError::UnknownOption(word.to_owned());
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        };
        let renamed = OLD_NAMES.iter().find(|(old, _)| *old == name);
        let name = renamed.map_or(name, |(_, new)| *new);
        let known = OPTIONS.iter().find(|(known, ..)| *known == name);
        let (name, _, takes) = known.ok_or_else(unknown)?;
        return Ok((name, *takes, value));
    }
    let mut letters = word.strip_prefix('-').ok_or_else(unknown)?.chars();
    let letter = letters.next().ok_or_else(unknown)?;
    let known = OPTIONS.iter().find(|(_, short, _)| *short == Some(letter));
    let (name, _, takes) = known.ok_or_else(unknown)?;
    let attached = letters.as_str().trim_start_matches('=');
    Ok((
        name,
        *takes,
        (!attached.is_empty()).then(|| attached.to_owned()),
    ))
}
