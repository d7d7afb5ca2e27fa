//! The `acl_file` of mosquitto.
//!
//! The behaviour of mosquitto 2.0 and 2.1, and its counterpart here:
//! - `topic` lines before the first `user` line are for clients without user name, not for all;
//!   those after a `user` line for that user; `pattern` lines for all clients, wherever they stand.
//! - A client's `topic` lines come first, among them those that deny; then the patterns, again
//!   those that deny first. So a `topic` line that allows overrides a `pattern` that denies. In
//!   mosquitto everything that no line allows is denied; here later rules and the default decide.
//! - `read` applies to messages to the client. Mosquitto grants every subscription and omits the
//!   messages that may not be read; here a subscription of which nothing may be read is refused.
//! - `%c` and `%u` count in patterns only; a pattern with `%u` does not apply to clients without
//!   user name.
//!
//! Stricter than mosquitto: a `/` in a client identifier or user name never matches a placeholder.
//! Less strict: a client whose name or identifier contains `+` or `#` keeps the patterns without
//! placeholders.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::error::{Hint, Problem, excerpt};
use super::filter::Filter;
use super::parse::{collect, is_comment};
use super::{Actions, Rule, RuleError, Rules, Source, Who};

impl Rules {
    /// Reads a mosquitto `acl_file`; the rules keep the lines they come from.
    ///
    /// An empty file denies everything in mosquitto, and so would these rules with the default to
    /// deny.
    ///
    /// # Errors
    /// Lines that mosquitto refuses, and topics of shared subscriptions, which mean nothing to it.
    pub fn from_mosquitto(text: &str, source: impl Into<Source>) -> Result<Self, Vec<RuleError>> {
        let source = source.into();
        let mut user = None;
        let lines = text.lines().zip(1..);
        let mut parsed: Vec<_> = lines
            .filter(|(line, _)| !is_comment(line))
            .filter_map(|(line, number)| read(line, &mut user, source.line(number)).transpose())
            .collect();
        // Stable: within a rank the lines keep their order.
        parsed.sort_by_key(|found| found.as_ref().ok().map(|(rank, _)| *rank));
        collect(parsed.into_iter().map(|found| found.map(|(_, rule)| rule)))
    }
}

/// Rules of a lower rank come first; of each kind those that deny.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Topic(bool),
    Pattern(bool),
}

/// Reads one line; a `user` line is not a rule.
fn read(
    line: &str,
    user: &mut Option<Box<str>>,
    source: Source,
) -> Result<Option<(Rank, Rule)>, RuleError> {
    let (keyword, rest) = split(line.trim_end());
    let parsed = match keyword {
        "user" if rest.is_empty() => Err(Problem::MosquittoMissing {
            part: "user name",
            keyword: "user",
        }),
        "user" => {
            *user = Some(rest.into());
            return Ok(None);
        }
        "topic" => topic(rest, "topic"),
        "pattern" => topic(rest, "pattern"),
        other => Err(Problem::MosquittoKeyword {
            found: excerpt(other),
            hint: Hint::nearest(other, &["topic", "pattern", "user"]),
        }),
    };
    let (allow, actions, topic) = match parsed {
        Ok(parts) => parts,
        Err(problem) => return Err(problem.at(source)),
    };
    let (rank, who, filter) = if keyword == "pattern" {
        (Rank::Pattern(allow), Who::All, pattern(topic))
    } else {
        let who = user.clone().map_or(Who::Anonymous, Who::User);
        (Rank::Topic(allow), who, plain(topic))
    };
    let rule = Rule::build(source, || Ok((allow, who, actions, Filter::new(&filter)?)))?;
    Ok(Some((rank, rule)))
}

/// A word and the rest behind it. Only spaces separate, as in mosquitto.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches(' ');
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    (word, rest.trim())
}

/// The rest behind `topic` or `pattern`: an access, if there is more than one word, and the topic.
fn topic<'a>(rest: &'a str, keyword: &'static str) -> Result<(bool, Actions, &'a str), Problem> {
    const ACCESS: [&str; 4] = ["read", "write", "readwrite", "deny"];
    let (access, topic) = split(rest);
    if access.is_empty() {
        return Err(Problem::MosquittoMissing {
            part: "topic",
            keyword,
        });
    }
    if topic.is_empty() {
        return Ok((true, Actions::BOTH, access));
    }
    match access {
        "read" => Ok((true, Actions::SUBSCRIBE, topic)),
        "write" => Ok((true, Actions::PUBLISH, topic)),
        "readwrite" => Ok((true, Actions::BOTH, topic)),
        "deny" => Ok((false, Actions::BOTH, topic)),
        other => Err(Problem::MosquittoAccess {
            found: excerpt(other),
            hint: Hint::nearest(other, &ACCESS),
        }),
    }
}

/// A topic in which nothing is a placeholder.
fn plain(topic: &str) -> String {
    topic.replace('%', "%%").replace("${", "%${")
}

/// A topic in which only `%c` and `%u` are placeholders.
fn pattern(topic: &str) -> String {
    plain(topic).replace("%%c", "%c").replace("%%u", "%u")
}
