//! Errors in rules, and how to fix them.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use super::{RULES_MAX, Source};

/// A rule that cannot be used: its source and its error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{source}: {problem}", source = .place)]
pub struct RuleError {
    /// The source of the rule.
    pub place: Source,
    /// The error.
    pub problem: Problem,
}

/// The error in a rule; the text says how to fix it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum Problem {
    #[error("{part} is missing; a rule is `allow|deny WHO pub|sub|pubsub FILTER`")]
    Missing { part: &'static str },
    #[error("'{found}' is neither 'allow' nor 'deny'{hint}")]
    Effect { found: Box<str>, hint: Hint },
    #[error(
        "'{found}' matches no client{hint}; write all, anonymous, authenticated, or a name behind \
         user:, client:, role:, group:, ip:, listener: or cn:"
    )]
    Who { found: Box<str>, hint: Hint },
    #[error("a name is missing behind '{kind}:'")]
    NoName { kind: &'static str },
    #[error("a name is longer than 65535 bytes, which no client can have")]
    LongName,
    #[error(
        "'{found}' is not a network; write an address, or ADDRESS/PREFIX with no bit set behind the \
         prefix, as 10.0.0.0/8"
    )]
    Network { found: Box<str> },
    #[error("'{found}' is none of 'pub', 'sub' and 'pubsub'{hint}")]
    Action { found: Box<str>, hint: Hint },
    #[error("'{found}' does not qualify an action; write (qos=0,1,2 retain=true|false)")]
    Qualifier { found: Box<str> },
    #[error("'retain' qualifies 'pub' only; leave it out")]
    RetainOfSubscription,
    #[error("it is about nothing: neither publishing nor subscribing, or no quality of service")]
    AboutNothing,
    #[error(
        "'{found}' is not a topic filter; '+' and '#' stand alone between slashes, '#' comes last, \
         and it has 1 to 65535 bytes"
    )]
    Filter { found: Box<str> },
    #[error("'{found}' names a shared subscription; write the filter behind $share/GROUP/ alone")]
    Shared { found: Box<str> },
    #[error(
        "'{found}' is not a placeholder{hint}; write %c, %u, ${{client_id}}, ${{username}}, ${{cert.cn}}, \
         ${{listener}} or ${{claim.NAME}}, and %% or %$ for a percent or dollar sign"
    )]
    Placeholder { found: Box<str>, hint: Hint },
    #[error("a double quote is not closed")]
    Quote,
    #[error(r#"'{found}' means nothing in quotes; write \", \\ or \u{{HEX}}"#)]
    Escape { found: Box<str> },
    #[error(
        "'{found}' stands behind the end; put names and filters with spaces in double quotes, and \
         comments on lines of their own"
    )]
    Trailing { found: Box<str> },
    #[error("more than {RULES_MAX} rules; use placeholders instead of rules for each client")]
    TooMany,
    #[error("'{found}' is none of 'topic', 'pattern' and 'user'{hint}")]
    MosquittoKeyword { found: Box<str>, hint: Hint },
    #[error("'{found}' is none of 'read', 'write', 'readwrite' and 'deny'{hint}")]
    MosquittoAccess { found: Box<str>, hint: Hint },
    #[error("a {part} is missing behind '{keyword}'")]
    MosquittoMissing {
        part: &'static str,
        keyword: &'static str,
    },
}

impl Problem {
    /// The word that is wrong, if it is one.
    pub fn found(&self) -> Option<&str> {
        match self {
            Self::Effect { found, .. }
            | Self::Who { found, .. }
            | Self::Network { found }
            | Self::Action { found, .. }
            | Self::Qualifier { found }
            | Self::Filter { found }
            | Self::Shared { found }
            | Self::Placeholder { found, .. }
            | Self::Escape { found }
            | Self::Trailing { found }
            | Self::MosquittoKeyword { found, .. }
            | Self::MosquittoAccess { found, .. } => Some(found),
            Self::Missing { .. }
            | Self::NoName { .. }
            | Self::LongName
            | Self::RetainOfSubscription
            | Self::AboutNothing
            | Self::Quote
            | Self::TooMany
            | Self::MosquittoMissing { .. } => None,
        }
    }

    pub(super) fn at(self, place: Source) -> RuleError {
        RuleError {
            place,
            problem: self,
        }
    }
}

/// A suggestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint(Option<&'static str>);

/// Longer words are not typing errors.
const WORD_BYTES_MAX: usize = 24;
const EXCERPT_CHARS_MAX: usize = 60;

impl Hint {
    /// The suggested word.
    pub fn word(self) -> Option<&'static str> {
        self.0
    }

    /// The word with the fewest differences, in at most two letters and half of it.
    pub(super) fn nearest(found: &str, words: &[&'static str]) -> Self {
        let close = |word: &&'static str| {
            let edits = edits(found, word)?;
            (edits <= 2 && 2 * edits <= word.len()).then_some((edits, *word))
        };
        Self(words.iter().filter_map(close).min().map(|(_, word)| word))
    }

    /// The words of other systems, then the nearest.
    pub(super) fn meant(
        found: &str,
        others: &[(&str, &'static str)],
        words: &[&'static str],
    ) -> Self {
        let other = others
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(found));
        other.map_or_else(
            || Self::nearest(found, words),
            |(_, ours)| Self(Some(*ours)),
        )
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .map_or(Ok(()), |word| write!(formatter, ", did you mean '{word}'?"))
    }
}

/// The unknown text, short enough and safe for a line of a log.
pub(super) fn excerpt(text: &str) -> Box<str> {
    let mut shown = String::new();
    for (count, letter) in text.chars().enumerate() {
        if count == EXCERPT_CHARS_MAX {
            shown.push('…');
            break;
        }
        if letter.is_control() {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown.into_boxed_str()
}

/// Letters to insert, remove or replace; none if the words are too long to compare.
fn edits(found: &str, word: &str) -> Option<usize> {
    let (found, word) = (found.as_bytes(), word.as_bytes());
    if found.len() > WORD_BYTES_MAX || word.len() > WORD_BYTES_MAX {
        return None;
    }
    // The row of the letters of `found` so far, against each beginning of `word`.
    let mut row = [0; WORD_BYTES_MAX + 1];
    for (column, cell) in row.iter_mut().enumerate() {
        *cell = column;
    }
    for (line, letter) in found.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, wanted) in word.iter().enumerate() {
            let replaced = diagonal + usize::from(!letter.eq_ignore_ascii_case(wanted));
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    Some(row[word.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised_and_another_word_is_not() {
        let hint = |found| Hint::nearest(found, &["allow", "deny"]).0;
        assert_eq!(hint("alow"), Some("allow"));
        assert_eq!(hint("Deny"), Some("deny"));
        assert_eq!(hint("drop"), None);
        assert_eq!(hint("permit"), None);
        assert_eq!(hint(""), None);
        assert_eq!(hint(&"x".repeat(100)), None);
    }

    #[test]
    fn the_distance_of_two_words_counts_inserted_removed_and_replaced_letters() {
        for (found, word, count) in [
            ("", "", 0),
            ("allow", "ALLOW", 0),
            ("abc", "", 3),
            ("", "abc", 3),
            ("xallow", "allow", 1),
            ("allo", "allow", 1),
            ("allew", "allow", 1),
            ("kitten", "sitting", 3),
            ("flaw", "lawn", 2),
        ] {
            assert_eq!(edits(found, word), Some(count), "{found} {word}");
        }
    }

    #[test]
    fn long_words_are_not_compared() {
        let (longest, longer) = ("x".repeat(24), "x".repeat(25));
        assert_eq!(edits(&longest, "x"), Some(23));
        assert_eq!(edits("x", &longest), Some(23));
        assert_eq!(edits(&longer, "x"), None);
        assert_eq!(edits("x", &longer), None);
        assert_eq!(edits(&longer, &longer), None);
    }

    #[test]
    fn a_hint_knows_words_of_other_systems_and_allows_two_wrong_letters() {
        let hint = |found| Hint::meant(found, &[("permit", "allow")], &["allow", "deny"]).word();
        assert_eq!(hint("PERMIT"), Some("allow"));
        assert_eq!(
            hint("permits"),
            None,
            "a wrong letter in a word of another system"
        );
        assert_eq!(hint("allowxx"), Some("allow"));
        assert_eq!(hint("allowxxx"), None);
        assert_eq!(hint("dexx"), Some("deny"));
        assert_eq!(Hint::nearest("ix", &["ip"]).word(), Some("ip"));
        let short = |found| Hint::nearest(found, &["sub"]).word();
        assert_eq!(short("sud"), Some("sub"));
        assert_eq!(short("sxx"), None, "more than half of the word is wrong");
    }

    #[test]
    fn a_problem_names_a_wrong_word_but_no_missing_one() {
        let problem = |text| crate::Rule::parse(text, "test").unwrap_err().problem;
        assert_eq!(problem("alow all pub a").found(), Some("alow"));
        assert_eq!(problem("allow all pub a/#/b").found(), Some("a/#/b"));
        assert_eq!(problem("allow all").found(), None);
    }

    #[test]
    fn an_excerpt_fits_into_a_line_of_a_log() {
        assert_eq!(&*excerpt("a\nb"), "a\\nb");
        assert_eq!(excerpt(&"ü".repeat(1000)).chars().count(), 61);
    }
}
