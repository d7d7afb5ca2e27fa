//! Display of stored values: times, durations, names of clients, tables.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{BufRead as _, Write as _};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use thrum_broker::config::units;
use thrum_figures::{bytes, fraction};
use thrum_storage::WallMillis;

use super::Failure;

/// The text of an empty cell.
pub(super) const NOTHING: &str = "-";

/// The wall clock.
pub(super) fn now() -> WallMillis {
    WallMillis::try_from(Timestamp::now().as_millisecond()).unwrap_or(0)
}

/// A time as `2026-11-22T09:12:03.250Z`, as the management interface writes it; later times show
/// the last representable one.
pub(super) fn time(at: WallMillis) -> String {
    let millis = i64::try_from(at).unwrap_or(i64::MAX);
    let time = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    format!("{time:.3}")
}

/// A time as [`time`] writes it, or with an offset from UTC.
pub(super) fn parse_time(text: &str) -> Option<WallMillis> {
    let time: Timestamp = text.parse().ok()?;
    WallMillis::try_from(time.as_millisecond()).ok()
}

/// Seconds as `7d`, `90s`, `never`.
pub(super) fn seconds(seconds: u32) -> String {
    let duration = Duration::from_secs(seconds.into());
    units::format_duration(duration).unwrap_or_else(|| "0s".to_owned())
}

/// Reads `--away-for`.
pub(super) fn parse_span(text: &str) -> Result<Duration, String> {
    let expected = "expected a duration such as \"7d\", \"12h\" or a number of seconds";
    units::parse_duration(text).ok_or_else(|| expected.to_owned())
}

/// A size as `12 KiB`.
pub(super) fn size(len: usize) -> String {
    bytes(fraction(len as u64))
}

/// A name that a client has chosen, escaped if it would control the terminal.
pub(super) fn name(text: &str) -> Cow<'_, str> {
    if text.chars().any(controls_the_terminal) {
        Cow::Owned(text.escape_debug().to_string())
    } else {
        Cow::Borrowed(text)
    }
}

/// A value as JSON on one line, without characters that control the terminal or end a line: names
/// that clients have chosen are among its texts.
pub(super) fn json_line<T: Serialize>(value: &T) -> serde_json::Result<String> {
    serde_json::to_string(value).map(json_text)
}

/// The same of JSON that is text already.
pub(super) fn json_text(text: String) -> String {
    if !text.chars().any(controls_the_terminal) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for one in text.chars() {
        // These characters have one unit of UTF-16, and are only within the strings of JSON.
        if controls_the_terminal(one) {
            escaped.extend([format!("\\u{:04x}", u32::from(one))]);
        } else {
            escaped.push(one);
        }
    }
    escaped
}

/// Whether a character controls the terminal, the direction of the text around it, or the end of a
/// line.
fn controls_the_terminal(one: char) -> bool {
    let changes_the_direction = matches!(
        one,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    one.is_control() || changes_the_direction || matches!(one, '\u{2028}' | '\u{2029}')
}

/// A count and what is counted: `1 session`, `2 sessions`.
pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Rows below their headings; every column but the last one is as wide as its widest value.
pub(super) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let values = rows.iter().filter_map(|row| row.get(column));
        let widest = values.map(|value| value.chars().count()).max();
        widest.unwrap_or(0).max(headings[column].len())
    };
    let widths: Vec<usize> = (0..headings.len().saturating_sub(1)).map(width).collect();
    let mut text = String::new();
    let headings: Vec<String> = headings.iter().map(|&heading| heading.to_owned()).collect();
    for row in std::iter::once(&headings).chain(rows) {
        for (place, value) in row.iter().enumerate() {
            // A string takes everything.
            let written = match widths.get(place) {
                Some(width) => write!(text, "{value:<width$}  "),
                None => writeln!(text, "{value}"),
            };
            written.unwrap_or_default();
        }
    }
    text
}

/// Asks on the terminal; any answer but yes, also the end of the input, refuses.
pub(super) fn confirm(question: &str) -> anyhow::Result<()> {
    let mut errors = std::io::stderr().lock();
    write!(errors, "{question} [y/N] ")?;
    errors.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::usage(
        "not confirmed, nothing was changed; -y does it without asking",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        for millis in [0, 1_700_000_000_000, 1_700_000_000_250] {
            assert_eq!(parse_time(&time(millis)), Some(millis));
        }
        assert_eq!(time(1_700_000_000_000), "2023-11-14T22:13:20.000Z");
        assert_eq!(
            parse_time("2026-11-22T01:00:00+01:00"),
            parse_time("2026-11-22T00:00:00Z")
        );
        assert_eq!(parse_time("yesterday"), None);
        assert!(time(u64::MAX).starts_with("9999-"), "{}", time(u64::MAX));
    }

    #[test]
    fn durations_are_those_of_the_configuration() {
        assert_eq!(seconds(0), "0s");
        assert_eq!(seconds(604_800), "7d");
        assert_eq!(seconds(u32::MAX), "never");
    }

    #[test]
    fn names_do_not_control_the_terminal() {
        assert_eq!(name("\u{fc}ber"), "\u{fc}ber");
        assert_eq!(name("a\u{1b}[2J"), "a\\u{1b}[2J");
        assert_eq!(name("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(name("a\u{2028}b"), "a\\u{2028}b");
    }

    #[test]
    fn json_does_not_control_the_terminal_and_keeps_its_meaning() {
        let controls = "\u{1b}\u{7f}\u{85}\u{9b}\u{9f}\u{61c}\u{200f}\u{202e}\u{2028}\u{2069}";
        let value = format!("\u{fc}\u{1f600}{controls}");
        let text = json_line(&value).unwrap();
        assert_eq!(
            text,
            "\"\u{fc}\u{1f600}\\u001b\\u007f\\u0085\\u009b\\u009f\\u061c\\u200f\\u202e\\u2028\\u2069\""
        );
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), value);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_value() {
        let rows = [
            vec!["a".to_owned(), "b".to_owned()],
            vec!["long one".to_owned(), "c".to_owned()],
        ];
        assert_eq!(
            table(&["ID", "X"], &rows),
            "ID        X\na         b\nlong one  c\n"
        );
    }
}
