//! Filters as text: `user=alice queue>100 state=connected`.
//!
//! ```text
//!   filter = term { space term }
//!   term   = key operator value | word           a word is a part of the client identifier
//!   operator = "=" | "!=" | "<" | "<=" | ">" | ">="
//!   value  = characters but spaces and quotes | '"' characters, with \" and \\ '"'
//! ```
//!
//! This module reads no clock and no session: text in, conditions out.

use std::fmt;
use std::str::FromStr;

use thrum_access::Network;
use thrum_codec::Version;
use thrum_settings::{nearest, parse_duration, parse_size};

use super::{
    CONDITIONS_MAX, ClientProblem, Comparison, Condition, Figure, SessionFilter, SessionState,
};
use crate::control::query::wildcard::WildcardText;

/// Longest filter in bytes: the address of a request has room for it.
const FILTER_BYTES_MAX: usize = 4096;

/// The keys that are not figures.
const KEYS: [&str; 9] = [
    "client",
    "client_id",
    "user",
    "address",
    "listener",
    "version",
    "state",
    "problem",
    "subscribed",
];

/// Why a text is no filter, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// Characters before the term that is wrong.
    pub at: usize,
    /// The cause, with what would be right.
    pub what: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, what } = self;
        write!(formatter, "{what} (at character {})", at + 1)
    }
}

impl std::error::Error for FilterError {}

impl FromStr for SessionFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let error = |at, what| Err(FilterError { at, what });
        if text.len() > FILTER_BYTES_MAX {
            let what = format!("a filter has at most {FILTER_BYTES_MAX} bytes");
            return error(0, what);
        }
        let mut filter = Self::default();
        let mut rest = text.trim_start();
        let mut terms = 0;
        while !rest.is_empty() {
            let at = text[..text.len() - rest.len()].chars().count();
            let (term, behind) = match split_term(rest) {
                Ok(split) => split,
                Err(what) => return error(at, what),
            };
            terms += 1;
            if terms > CONDITIONS_MAX {
                return error(at, format!("a filter has at most {CONDITIONS_MAX} terms"));
            }
            filter = match term.condition() {
                Ok((condition, false)) => filter.and(condition),
                Ok((condition, true)) => filter.and_not(condition),
                Err(what) => return error(at, what),
            };
            rest = behind.trim_start();
        }
        Ok(filter)
    }
}

/// The operators, longer ones first.
const OPERATORS: [&str; 6] = ["!=", "<=", ">=", "=", "<", ">"];

/// A term as it is written.
#[derive(Debug, PartialEq, Eq)]
struct WrittenTerm<'a> {
    /// Key and operator; none for a word.
    key: Option<(&'a str, &'static str)>,
    value: String,
}

/// Splits the first term off.
fn split_term(text: &str) -> Result<(WrittenTerm<'_>, &str), String> {
    let end_of_key = text.find(|character: char| !is_of_key(character));
    let (key, behind) = text.split_at(end_of_key.unwrap_or(text.len()));
    let operator = OPERATORS.into_iter().find(|sign| behind.starts_with(sign));
    let (key, value) = match operator {
        Some(_) if key.is_empty() => return Err(format!("{behind:?} begins with an operator")),
        Some(operator) => (Some((key, operator)), &behind[operator.len()..]),
        None => (None, text),
    };
    let (value, rest) = split_value(value)?;
    if let (Some((key, operator)), true) = (key, value.is_empty()) {
        return Err(format!(
            "{key}{operator} has no value; \"\" stands for an empty one"
        ));
    }
    let value = value.into_text();
    Ok((WrittenTerm { key, value }, rest))
}

const fn is_of_key(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

enum Value {
    Plain(String),
    Quoted(String),
}

impl Value {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Plain(text) if text.is_empty())
    }

    fn into_text(self) -> String {
        match self {
            Self::Plain(text) | Self::Quoted(text) => text,
        }
    }
}

/// Splits the first value off.
fn split_value(text: &str) -> Result<(Value, &str), String> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        if value.contains('"') {
            return Err(format!(
                "a quote is in the middle of {value:?}; put the whole value into quotes"
            ));
        }
        return Ok((Value::Plain(value.to_owned()), rest));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let rest = &quoted[at + 1..];
                if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
                    return Err("a space is missing behind the closing quote".to_owned());
                }
                return Ok((Value::Quoted(value), rest));
            }
            '\\' => match characters.next() {
                Some((_, escaped @ ('"' | '\\'))) => value.push(escaped),
                _ => return Err("behind \\ in quotes there is \" or \\".to_owned()),
            },
            other => value.push(other),
        }
    }
    Err("the closing quote is missing".to_owned())
}

impl WrittenTerm<'_> {
    /// The condition, and whether it must not hold.
    fn condition(&self) -> Result<(Condition, bool), String> {
        let Some((key, operator)) = self.key else {
            return Ok((Condition::ClientId(containing(&self.value)), false));
        };
        if let Some(figure) = Figure::named(key) {
            return figure_condition(figure, operator, &self.value);
        }
        if !KEYS.contains(&key) {
            return Err(unknown_key(key));
        }
        let is_negated = match operator {
            "=" => false,
            "!=" => true,
            other => return Err(format!("{key} takes = and !=, not {other}")),
        };
        Ok((named_condition(key, &self.value)?, is_negated))
    }
}

/// A pattern of texts that contain a word, or that match it if it has a `*`.
fn containing(word: &str) -> WildcardText {
    if word.contains('*') {
        WildcardText::new(word)
    } else {
        WildcardText::new(&format!("*{word}*"))
    }
}

impl Condition {
    /// The condition that a key which is not a figure equals a value.
    ///
    /// # Errors
    /// The value is none of that key, with what would be right.
    pub fn named(key: &str, value: &str) -> Result<Self, String> {
        if KEYS.contains(&key) {
            named_condition(key, value)
        } else {
            Err(unknown_key(key))
        }
    }
}

fn named_condition(key: &str, value: &str) -> Result<Condition, String> {
    Ok(match key {
        "user" => Condition::User(WildcardText::new(value)),
        "listener" => Condition::Listener(WildcardText::new(value)),
        "subscribed" => Condition::Subscribed(value.to_owned()),
        "address" => {
            let network = value.parse::<Network>();
            Condition::Network(network.map_err(|error| format!("address: {error}"))?)
        }
        "version" => Condition::Version(version(value)?),
        "state" => {
            let known = SessionState::ALL.map(SessionState::name);
            let found = SessionState::ALL.into_iter().zip(known);
            let found = found.into_iter().find(|(_, name)| *name == value);
            Condition::State(found.ok_or_else(|| not_among("state", &known, value))?.0)
        }
        "problem" if value == "any" => Condition::AnyProblem,
        "problem" => {
            let mut known = ClientProblem::ALL.into_iter();
            let found = known.find(|problem| problem.name() == value);
            let names = ["any"]
                .into_iter()
                .chain(ClientProblem::ALL.map(ClientProblem::name));
            let names: Vec<_> = names.collect();
            Condition::Problem(found.ok_or_else(|| not_among("problem", &names, value))?)
        }
        _ => Condition::ClientId(WildcardText::new(value)),
    })
}

fn version(value: &str) -> Result<Version, String> {
    let found = match value {
        "5" => Some(Version::V5),
        name => Version::named(name),
    };
    found.ok_or_else(|| not_among("version", &Version::ALL.map(Version::name), value))
}

fn not_among(key: &str, known: &[&str], value: &str) -> String {
    format!("{key} is one of {}, not {value:?}", known.join(", "))
}

fn unknown_key(key: &str) -> String {
    let figures = Figure::ALL.map(Figure::short_name);
    let known = || {
        KEYS.into_iter()
            .filter(|key| *key != "client_id")
            .chain(figures)
    };
    if let Some(near) = nearest(key, known()) {
        return format!("there is no key {key}; did you mean {near}?");
    }
    let known: Vec<_> = known().collect();
    format!("there is no key {key}; the keys are {}", known.join(", "))
}

fn figure_condition(
    figure: Figure,
    operator: &str,
    value: &str,
) -> Result<(Condition, bool), String> {
    let (comparison, is_negated) = match operator {
        "<" => (Comparison::Below, false),
        "<=" => (Comparison::AtMost, false),
        ">=" => (Comparison::AtLeast, false),
        ">" => (Comparison::Above, false),
        "!=" => (Comparison::Equal, true),
        _ => (Comparison::Equal, false),
    };
    let (number, example) = match figure {
        Figure::QueuedBytes => (parse_size(value), "a size, as 64KiB"),
        Figure::QueuePercent => {
            let digits = value.strip_suffix('%').unwrap_or(value);
            (digits.parse().ok(), "a percentage, as 80%")
        }
        Figure::Expiry | Figure::Idle | Figure::OldestQueued | Figure::OldestUnacknowledged => {
            let seconds = value.parse().ok();
            let duration = || parse_duration(value).map(|duration| duration.as_secs());
            (seconds.or_else(duration), "a duration, as 10m, or seconds")
        }
        Figure::QueuedMessages
        | Figure::Inflight
        | Figure::Subscriptions
        | Figure::MessagesReceived
        | Figure::MessagesSent
        | Figure::Dropped => (value.parse().ok(), "a number, as 100"),
    };
    let number = number.ok_or_else(|| {
        let key = figure.short_name();
        format!("{key} is compared with {example}, not with {value:?}")
    })?;
    Ok((Condition::Figure(figure, comparison, number), is_negated))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The conditions of a text in short, or the error.
    fn read(text: &str) -> Result<Vec<String>, String> {
        let filter: SessionFilter = text
            .parse()
            .map_err(|error: FilterError| error.to_string())?;
        let terms = filter.terms.iter();
        let terms = terms.map(|term| {
            let not = if term.is_negated { "not " } else { "" };
            format!("{not}{:?}", term.condition)
        });
        Ok(terms.collect())
    }

    #[test]
    fn terms_are_read_in_order() {
        let found = read(" user=alice  queue>100 state=connected ").unwrap();
        let expected = [
            r#"User(WildcardText("alice"))"#,
            "Figure(QueuedMessages, Above, 100)",
            "State(Connected)",
        ];
        assert_eq!(found, expected);
        assert_eq!(read("").unwrap(), [""; 0]);
    }

    #[test]
    fn a_word_is_a_part_of_the_client_identifier() {
        let one = |text: &str| read(text).unwrap().remove(0);
        assert_eq!(one("meter"), r#"ClientId(WildcardText("*meter*"))"#);
        assert_eq!(one("meter-*"), r#"ClientId(WildcardText("meter-*"))"#);
        assert_eq!(one("\"a b\""), r#"ClientId(WildcardText("*a b*"))"#);
        assert_eq!(one("client=a:b"), r#"ClientId(WildcardText("a:b"))"#);
        assert_eq!(one("site/1"), r#"ClientId(WildcardText("*site/1*"))"#);
    }

    #[test]
    fn values_have_the_units_of_their_figure() {
        for (text, expected) in [
            ("queue_bytes>=64KiB", "Figure(QueuedBytes, AtLeast, 65536)"),
            ("queue_percent>80%", "Figure(QueuePercent, Above, 80)"),
            ("idle>10m", "Figure(Idle, Above, 600)"),
            ("idle<=30", "Figure(Idle, AtMost, 30)"),
            ("messages_sent<7", "Figure(MessagesSent, Below, 7)"),
            ("inflight!=0", "not Figure(Inflight, Equal, 0)"),
            ("user!=\"\"", r#"not User(WildcardText(""))"#),
            (
                r#"user="a \"b\" \\""#,
                r#"User(WildcardText("a \"b\" \\"))"#,
            ),
            ("problem=any", "AnyProblem"),
            ("problem=near_limit", "Problem(NearLimit)"),
            ("version=5", "Version(V5)"),
            ("subscribed=$share/g/a/#", r#"Subscribed("$share/g/a/#")"#),
        ] {
            assert_eq!(read(text).unwrap(), [expected], "{text}");
        }
        assert!(read("address=192.0.2.0/24").unwrap()[0].starts_with("Network("));
    }

    #[test]
    fn a_wrong_term_is_named_with_its_place_and_what_would_be_right() {
        for (text, expected) in [
            (
                "usr=a",
                "there is no key usr; did you mean user? (at character 1)",
            ),
            (
                "a qeue>1",
                "there is no key qeue; did you mean queue? (at character 3)",
            ),
            (
                "zzzzzzzzz=1",
                "there is no key zzzzzzzzz; the keys are client, user,",
            ),
            (
                "queue>many",
                "queue is compared with a number, as 100, not with \"many\"",
            ),
            (
                "queue_bytes=x",
                "queue_bytes is compared with a size, as 64KiB",
            ),
            (
                "idle>soon",
                "idle is compared with a duration, as 10m, or seconds",
            ),
            (
                "state=up",
                "state is one of connected, disconnected, persistent, not \"up\"",
            ),
            ("problem=x", "problem is one of any, queue, slow,"),
            ("version=4", "version is one of 3.1, 3.1.1, 5.0, not \"4\""),
            ("address=here", "address: "),
            ("user>a", "user takes = and !=, not >"),
            (
                "user=",
                "user= has no value; \"\" stands for an empty one (at character 1)",
            ),
            (">5", "\">5\" begins with an operator"),
            ("user=\"a", "the closing quote is missing"),
            ("user=a\"b\"", "a quote is in the middle of"),
            ("user=\"a\"b", "a space is missing behind the closing quote"),
            ("user=\"\\n\"", "behind \\ in quotes there is \" or \\"),
            ("\u{fc} \u{fc} state=x", "(at character 5)"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.contains(expected), "{text}: {found}");
        }
        let long = "a".repeat(FILTER_BYTES_MAX + 1);
        assert!(read(&long).unwrap_err().contains("at most 4096 bytes"));
        let many = "a ".repeat(CONDITIONS_MAX + 1);
        assert!(read(&many).unwrap_err().contains("at most 16 terms"));
    }
}
