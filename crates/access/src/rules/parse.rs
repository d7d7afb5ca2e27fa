//! Text to rules.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use thrum_codec::QoS;

use super::error::{Hint, Problem, excerpt};
use super::filter::Filter;
use super::{Actions, ERRORS_MAX, QosSet, RULES_MAX, Rule, RuleError, Rules, Source, Who};
use crate::Network;

impl Rule {
    /// Reads one rule; the grammar is in [`crate::rules`].
    ///
    /// # Errors
    /// The first error from the left.
    pub fn parse(text: &str, source: impl Into<Source>) -> Result<Self, RuleError> {
        Self::build(source.into(), || {
            let mut cursor = Cursor { rest: text.trim() };
            let allow = effect(&mut cursor)?;
            let who = who(&mut cursor)?;
            let actions = actions(&mut cursor)?;
            let filter = filter(&mut cursor)?;
            cursor.end()?;
            Ok((allow, who, actions, filter))
        })
    }
}

impl Rules {
    /// Reads a file of rules, one a line; empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// Each wrong rule with its line, the first 100 of them; more than [`RULES_MAX`] rules.
    pub fn parse(text: &str, source: impl Into<Source>) -> Result<Self, Vec<RuleError>> {
        let source = source.into();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text.lines().zip(1..);
        let rules = lines.filter(|(line, _)| !is_comment(line));
        collect(rules.map(|(line, number)| Rule::parse(line, source.line(number))))
    }

    /// Reads rules of a list: each element is one.
    ///
    /// # Errors
    /// As for [`Rules::parse`], with the element's place, counted from 0.
    pub fn parse_list<T: AsRef<str>>(
        list: &[T],
        source: impl Into<Source>,
    ) -> Result<Self, Vec<RuleError>> {
        let source = source.into();
        let rules = list.iter().zip(0..);
        collect(rules.map(|(rule, index)| Rule::parse(rule.as_ref(), source.item(index))))
    }
}

/// The rules, or their errors.
pub(super) fn collect(
    parsed: impl Iterator<Item = Result<Rule, RuleError>>,
) -> Result<Rules, Vec<RuleError>> {
    collect_up_to(RULES_MAX, parsed)
}

fn collect_up_to(
    max: usize,
    parsed: impl Iterator<Item = Result<Rule, RuleError>>,
) -> Result<Rules, Vec<RuleError>> {
    let mut rules = Vec::new();
    let mut errors = Vec::new();
    for rule in parsed {
        match rule {
            Ok(rule) if rules.len() < max => rules.push(rule),
            Ok(rule) => {
                errors.push(Problem::TooMany.at(rule.source));
                break;
            }
            Err(error) => errors.push(error),
        }
        if errors.len() == ERRORS_MAX {
            break;
        }
    }
    if errors.is_empty() {
        Ok(rules.into_iter().collect())
    } else {
        Err(errors)
    }
}

pub(super) fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

/// The unread rest of a rule.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    /// The next word, up to white space or another terminator.
    fn word(
        &mut self,
        ends: impl Fn(char) -> bool,
        part: &'static str,
    ) -> Result<&'a str, Problem> {
        self.rest = self.rest.trim_start();
        if self.rest.is_empty() {
            return Err(Problem::Missing { part });
        }
        let end = self
            .rest
            .find(|letter: char| letter.is_whitespace() || ends(letter));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        Ok(word)
    }

    /// A name or filter, bare or in quotes, and whether it was in quotes.
    fn text(&mut self) -> Result<(Box<str>, bool), Problem> {
        if let Some(quoted) = self.rest.strip_prefix('"') {
            self.rest = quoted;
            return Ok((self.quoted()?, true));
        }
        let end = self.rest.find(char::is_whitespace);
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        Ok((word.into(), false))
    }

    /// The text in quotes, the first of them read.
    fn quoted(&mut self) -> Result<Box<str>, Problem> {
        let mut text = String::new();
        loop {
            let end = self.rest.find(['"', '\\']).ok_or(Problem::Quote)?;
            text.push_str(&self.rest[..end]);
            let is_end = self.rest.as_bytes()[end] == b'"';
            self.rest = &self.rest[end + 1..];
            if is_end {
                return Ok(text.into_boxed_str());
            }
            text.push(self.escaped()?);
        }
    }

    /// The character that a backslash escapes.
    fn escaped(&mut self) -> Result<char, Problem> {
        let unknown = |text: &str| {
            let end = text
                .char_indices()
                .nth(1)
                .map_or(text.len(), |(end, _)| end);
            let found = excerpt(&text[..end]);
            Problem::Escape {
                found: alloc::format!("\\{found}").into_boxed_str(),
            }
        };
        let rest = self.rest;
        if let Some(behind) = rest.strip_prefix("u{") {
            let meant = behind.split_once('}').and_then(|(digits, behind)| {
                let letter = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
                Some((letter, behind))
            });
            let (letter, behind) = meant.ok_or_else(|| unknown(rest))?;
            self.rest = behind;
            return Ok(letter);
        }
        match rest.chars().next() {
            Some(letter @ ('"' | '\\')) => {
                self.rest = &rest[1..];
                Ok(letter)
            }
            Some(_) => Err(unknown(rest)),
            None => Err(Problem::Quote),
        }
    }

    /// Nothing but white space stands here.
    fn end_of_word(&self) -> Result<(), Problem> {
        match self.rest.chars().next() {
            Some(letter) if !letter.is_whitespace() => Err(self.trailing()),
            _ => Ok(()),
        }
    }

    fn end(&self) -> Result<(), Problem> {
        if self.rest.trim_start().is_empty() {
            Ok(())
        } else {
            Err(self.trailing())
        }
    }

    fn trailing(&self) -> Problem {
        Problem::Trailing {
            found: excerpt(self.rest.trim()),
        }
    }
}

fn effect(cursor: &mut Cursor<'_>) -> Result<bool, Problem> {
    const OTHERS: [(&str, &str); 4] = [
        ("permit", "allow"),
        ("grant", "allow"),
        ("reject", "deny"),
        ("block", "deny"),
    ];
    match cursor.word(|_| false, "'allow' or 'deny'")? {
        "allow" => Ok(true),
        "deny" => Ok(false),
        other => Err(Problem::Effect {
            found: excerpt(other),
            hint: Hint::meant(other, &OTHERS, &["allow", "deny"]),
        }),
    }
}

fn who(cursor: &mut Cursor<'_>) -> Result<Who, Problem> {
    let word = cursor.word(|letter| letter == ':', "WHO")?;
    let Some(rest) = cursor.rest.strip_prefix(':') else {
        return match word {
            "all" => Ok(Who::All),
            "anonymous" => Ok(Who::Anonymous),
            "authenticated" => Ok(Who::Authenticated),
            other => Err(unknown_who(other)),
        };
    };
    cursor.rest = rest;
    let (name, is_quoted) = cursor.text()?;
    let who = match word {
        "user" => Who::User(name),
        "client" => client(cursor, name, is_quoted),
        "role" => Who::Role(name),
        "group" => Who::Group(name),
        "ip" => Who::Network(network(&name)?),
        "listener" => Who::Listener(name),
        "cn" => Who::CommonName(name),
        other => return Err(unknown_who(other)),
    };
    cursor.end_of_word()?;
    Ok(who)
}

/// A network with a bit behind its prefix is refused: its author means something else.
fn network(text: &str) -> Result<Network, Problem> {
    let first = text.split('/').next().unwrap_or(text).parse::<IpAddr>();
    let first = first.map(|address| address.to_canonical());
    let is_exact =
        |network: &Network| first == Ok(network.address()) && !text.contains(char::is_whitespace);
    let network = text.parse().ok().filter(is_exact);
    network.ok_or_else(|| Problem::Network {
        found: excerpt(text),
    })
}

/// A client identifier, or the beginning of one: a star inside the quotes is part of the name, one
/// behind them is not.
fn client(cursor: &mut Cursor<'_>, name: Box<str>, is_quoted: bool) -> Who {
    if is_quoted {
        if let Some(rest) = cursor.rest.strip_prefix('*') {
            cursor.rest = rest;
            return Who::ClientPrefix(name);
        }
        return Who::Client(name);
    }
    match name.strip_suffix('*') {
        Some(prefix) => Who::ClientPrefix(prefix.into()),
        None => Who::Client(name),
    }
}

fn unknown_who(found: &str) -> Problem {
    const OTHERS: [(&str, &str); 12] = [
        ("*", "all"),
        ("any", "all"),
        ("everyone", "all"),
        ("username", "user:"),
        ("clientid", "client:"),
        ("client_id", "client:"),
        ("ipaddr", "ip:"),
        ("ipaddress", "ip:"),
        ("net", "ip:"),
        ("network", "ip:"),
        ("roles", "role:"),
        ("common_name", "cn:"),
    ];
    const OURS: [&str; 10] = [
        "all",
        "anonymous",
        "authenticated",
        "user:",
        "client:",
        "role:",
        "group:",
        "ip:",
        "listener:",
        "cn:",
    ];
    Problem::Who {
        found: excerpt(found),
        hint: Hint::meant(found, &OTHERS, &OURS),
    }
}

fn actions(cursor: &mut Cursor<'_>) -> Result<Actions, Problem> {
    const OTHERS: [(&str, &str); 8] = [
        ("publish", "pub"),
        ("write", "pub"),
        ("subscribe", "sub"),
        ("read", "sub"),
        ("receive", "sub"),
        ("readwrite", "pubsub"),
        ("all", "pubsub"),
        ("both", "pubsub"),
    ];
    let word = cursor.word(|letter| letter == '(', "the action")?;
    let mut actions = match word {
        "pub" => Actions::PUBLISH,
        "sub" => Actions::SUBSCRIBE,
        "pubsub" => Actions::BOTH,
        other => {
            return Err(Problem::Action {
                found: excerpt(other),
                hint: Hint::meant(other, &OTHERS, &["pub", "sub", "pubsub"]),
            });
        }
    };
    let Some(rest) = cursor.rest.strip_prefix('(') else {
        return Ok(actions);
    };
    let Some((qualifiers, rest)) = rest.split_once(')') else {
        return Err(Problem::Qualifier {
            found: excerpt(cursor.rest),
        });
    };
    cursor.rest = rest;
    cursor.end_of_word()?;
    let mut seen = Seen::default();
    for qualifier in qualifiers.split_whitespace() {
        qualify(&mut actions, &mut seen, qualifier)?;
    }
    Ok(actions)
}

/// Qualifiers so far.
#[derive(Default)]
struct Seen {
    qos: bool,
    retain: bool,
}

/// Adds one qualifier; each may be there once.
fn qualify(actions: &mut Actions, seen: &mut Seen, qualifier: &str) -> Result<(), Problem> {
    let unknown = || Problem::Qualifier {
        found: excerpt(qualifier),
    };
    let (name, value) = qualifier.split_once('=').ok_or_else(unknown)?;
    let is_seen = match name {
        "qos" => {
            let all = value.split(',').map(|digit| match digit {
                "0" => Some(QoS::AtMostOnce),
                "1" => Some(QoS::AtLeastOnce),
                "2" => Some(QoS::ExactlyOnce),
                _ => None,
            });
            actions.qos = all.collect::<Option<QosSet>>().ok_or_else(unknown)?;
            &mut seen.qos
        }
        "retain" if !actions.publish => return Err(Problem::RetainOfSubscription),
        "retain" => {
            actions.retain = Some(value.parse().map_err(|_| unknown())?);
            &mut seen.retain
        }
        _ => return Err(unknown()),
    };
    if core::mem::replace(is_seen, true) {
        return Err(unknown());
    }
    Ok(())
}

fn filter(cursor: &mut Cursor<'_>) -> Result<Filter, Problem> {
    const PART: &str = "the topic filter";
    cursor.rest = cursor.rest.trim_start();
    let exact = cursor
        .rest
        .strip_prefix("eq")
        .filter(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
    if let Some(rest) = exact {
        cursor.rest = rest.trim_start();
    }
    if cursor.rest.is_empty() {
        return Err(Problem::Missing { part: PART });
    }
    let (text, _) = cursor.text()?;
    cursor.end_of_word()?;
    if exact.is_some() {
        Filter::exact(&text)
    } else {
        Filter::new(&text)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_network_with_bits_behind_its_prefix_is_refused() {
        for text in [
            "10.0.0.1/8",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0",
            "host",
            "/8",
            "",
            "fd00::1/8",
            "10.0.0.0/-1",
            "10.0.0.0/256",
            "::ffff:10.0.0.0/24",
            "::ffff:10.0.0.1/104",
            " 10.0.0.0/8",
            "10.0.0.0/ 8",
            "10.0.0.1 ",
        ] {
            let found = text.into();
            assert_eq!(network(text), Err(Problem::Network { found }), "{text}");
        }
    }

    #[test]
    fn a_network_is_printed_as_it_is_read() {
        for text in [
            "10.0.0.0/8",
            "192.168.1.7",
            "::1",
            "fd00::/8",
            "0.0.0.0/0",
            "::/0",
        ] {
            let network = network(text).map(|network| network.to_string());
            assert_eq!(network.as_deref(), Ok(text));
        }
        assert!(network("::ffff:10.0.0.0/104").is_ok());
    }

    #[test]
    fn rules_beyond_the_limit_are_an_error_at_the_first_of_them() {
        let rule = |line: usize| Rule::parse("allow all pub a", Source::from("test").line(line));
        assert_eq!(
            collect_up_to(3, (1..=3).map(rule)).map(|rules| rules.len()),
            Ok(3)
        );
        let errors = collect_up_to(3, (1..=5).map(rule)).expect_err("two too many");
        assert_eq!(errors.len(), 1);
        let error = errors[0].to_string();
        assert!(
            error.starts_with("test line 4: more than 1000000 rules"),
            "{error}"
        );
    }
}
