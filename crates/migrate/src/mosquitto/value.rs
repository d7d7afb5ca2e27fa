//! The possible values of an option, and their parsed form.

use super::syntax::Statement;

/// Seconds in each unit of an expiration.
const EXPIRATION_UNITS: [(char, u64); 6] = [
    ('s', 1),
    ('h', 3_600),
    ('d', 86_400),
    ('w', 7 * 86_400),
    ('m', 30 * 86_400),
    ('y', 365 * 86_400),
];

/// The possible values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `true` or `false`.
    Flag,
    /// A whole number, its least and its greatest value.
    Number(i64, i64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A number with a unit of time.
    Duration,
    /// Any text up to the end of the line.
    Text,
}

/// A value that has its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// `true` or `false`.
    Flag(bool),
    /// A number.
    Number(i64),
    /// A time in seconds.
    Seconds(u64),
    /// A word or a text.
    Text(String),
}

impl Form {
    /// Reads the value of a statement.
    ///
    /// # Errors
    /// The expected values.
    pub(super) fn read(self, statement: &Statement) -> Result<Value, String> {
        let (name, word) = (&statement.name, statement.word());
        if word.is_empty() {
            return Err(format!("{name} has no value; {}", self.expected()));
        }
        let read = match self {
            Self::Flag => flag(word).map(Value::Flag),
            Self::Number(min, max) => number(word)
                .filter(|number| (min..=max).contains(number))
                .map(Value::Number),
            Self::Choice(words) => words.contains(&word).then(|| Value::Text(word.to_owned())),
            Self::Duration => expiration(word).map(Value::Seconds),
            Self::Text => Some(Value::Text(statement.value.clone())),
        };
        read.ok_or_else(|| format!("{name}: {}, found {word:?}", self.expected()))
    }

    fn expected(self) -> String {
        match self {
            Self::Flag => "expected true or false".to_owned(),
            Self::Number(i64::MIN, i64::MAX) => "expected a whole number".to_owned(),
            Self::Number(i64::MIN, max) => format!("expected a whole number up to {max}"),
            Self::Number(min, i64::MAX) => format!("expected a whole number from {min} on"),
            Self::Number(min, max) => format!("expected a whole number from {min} to {max}"),
            Self::Choice(words) => format!("expected one of {}", words.join(", ")),
            Self::Duration => {
                "expected a number and one of s, h, d, w, m (30 days), y (365 days), such as 14d"
                    .to_owned()
            }
            Self::Text => "expected a text".to_owned(),
        }
    }
}

impl Value {
    /// The truth value; false for other forms.
    pub(super) fn is_true(&self) -> bool {
        *self == Self::Flag(true)
    }

    /// The number; 0 for other forms.
    pub(super) fn number(&self) -> i64 {
        match self {
            Self::Number(number) => *number,
            _ => 0,
        }
    }

    /// The seconds; 0 for other forms.
    pub(super) fn seconds(&self) -> u64 {
        match self {
            Self::Seconds(seconds) => *seconds,
            _ => 0,
        }
    }

    /// The text; empty for other forms.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }
}

/// Reads a truth value.
pub(super) fn flag(word: &str) -> Option<bool> {
    match word {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn number(word: &str) -> Option<i64> {
    match word.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

fn expiration(word: &str) -> Option<u64> {
    let unit = word.chars().next_back()?;
    let (_, seconds) = EXPIRATION_UNITS.iter().find(|(name, _)| *name == unit)?;
    let count: u64 = word.strip_suffix(unit)?.parse().ok()?;
    count.checked_mul(*seconds).filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::super::syntax::statements;
    use super::*;
    use thrum_settings::problem::Source;

    #[track_caller]
    fn check(form: Form, value: &str, expected: Result<Value, &str>) {
        let text = format!("x {value}");
        let source = Arc::new(Source::new(PathBuf::from("a"), text));
        let read = form.read(&statements(&source, "a")[0]);
        assert_eq!(read, expected.map_err(str::to_owned), "{value}");
    }

    #[test]
    fn only_the_first_word_of_a_flag_or_a_number_counts() {
        check(Form::Flag, "true # yes", Ok(Value::Flag(true)));
        check(Form::Flag, "0", Ok(Value::Flag(false)));
        check(Form::Number(0, 9), "7 8", Ok(Value::Number(7)));
        check(Form::Number(0, 90), "0x10", Ok(Value::Number(16)));
        check(Form::Text, "a b # c", Ok(Value::Text("a b # c".to_owned())));
    }

    #[test]
    fn expirations_have_the_units_of_the_manual() {
        for (text, seconds) in [("9s", 9), ("2h", 7_200), ("1d", 86_400), ("1w", 604_800)] {
            check(Form::Duration, text, Ok(Value::Seconds(seconds)));
        }
        check(Form::Duration, "2m", Ok(Value::Seconds(60 * 86_400)));
        check(Form::Duration, "1y", Ok(Value::Seconds(365 * 86_400)));
    }

    #[test]
    fn other_values_are_refused_with_the_expected_ones() {
        check(
            Form::Flag,
            "yes",
            Err("x: expected true or false, found \"yes\""),
        );
        check(
            Form::Number(1, 9),
            "10",
            Err("x: expected a whole number from 1 to 9, found \"10\""),
        );
        check(
            Form::Number(20, i64::MAX),
            "10k",
            Err("x: expected a whole number from 20 on, found \"10k\""),
        );
        check(
            Form::Choice(&["a", "b"]),
            "c",
            Err("x: expected one of a, b, found \"c\""),
        );
        check(Form::Text, "", Err("x has no value; expected a text"));
        for text in ["5", "0d", "d", "-1d", "5x", "é"] {
            let expected =
                "expected a number and one of s, h, d, w, m (30 days), y (365 days), such as 14d";
            check(
                Form::Duration,
                text,
                Err(&format!("x: {expected}, found {text:?}")),
            );
        }
    }
}
