//! Display of stored values: times, durations, names of clients, tables.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{BufRead as _, Write as _};
use std::time::Duration;

use jiff::Timestamp;
use thrum_broker::config::units;
use thrum_codec::Version;
use thrum_figures::{bytes, fraction};
use thrum_storage::WallMillis;

use super::Failure;

/// The text of an empty cell.
pub(super) const NOTHING: &str = "-";

/// The wall clock.
pub(super) fn now() -> WallMillis {
    WallMillis::try_from(Timestamp::now().as_millisecond()).unwrap_or(0)
}

/// A time as `2026-11-22T09:12:03.25Z`; later times show the last representable one.
pub(super) fn time(at: WallMillis) -> String {
    let millis = i64::try_from(at).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis)
        .unwrap_or(Timestamp::MAX)
        .to_string()
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

/// A version of the protocol as people write it.
pub(super) fn version(version: Version) -> &'static str {
    match version {
        Version::V31 => "3.1",
        Version::V311 => "3.1.1",
        Version::V5 => "5.0",
    }
}

/// A name from a client: it must not control the terminal.
pub(super) fn name(text: &str) -> Cow<'_, str> {
    if text.chars().any(steers_the_terminal) {
        Cow::Owned(text.escape_debug().to_string())
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether a character controls the terminal, or the direction of the text around it.
fn steers_the_terminal(one: char) -> bool {
    let turns_the_direction = matches!(
        one,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    one.is_control() || turns_the_direction
}

/// At most so many characters of a text; what is cut off is marked.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    kept.chain(['…']).collect()
}

/// A count in at most six characters: `9999`, `12.3k`, `4.5M`.
pub(super) fn short_count(count: u64) -> String {
    const UNITS: [(u64, &str); 6] = [
        (1_000_000_000_000_000_000, "E"),
        (1_000_000_000_000_000, "P"),
        (1_000_000_000_000, "T"),
        (1_000_000_000, "G"),
        (1_000_000, "M"),
        (1000, "k"),
    ];
    if count < 10_000 {
        return count.to_string();
    }
    let unit = UNITS.iter().find(|(unit, _)| count >= *unit);
    let (unit, letter) = unit.unwrap_or(&(1, ""));
    format!(
        "{}.{}{letter}",
        count / unit,
        count % unit / (unit / 10).max(1)
    )
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

/// Asks on the terminal; anything but yes is a refusal, an end of the input too.
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
    fn names_do_not_steer_the_terminal() {
        assert_eq!(name("\u{fc}ber"), "\u{fc}ber");
        assert_eq!(name("a\u{1b}[2J"), "a\\u{1b}[2J");
        assert_eq!(name("a\u{202e}b"), "a\\u{202e}b");
    }

    #[test]
    fn texts_and_counts_fit_their_columns() {
        assert_eq!(cut("\u{fc}ber", 4), "\u{fc}ber");
        assert_eq!(cut("\u{fc}ber", 3), "\u{fc}b…");
        for (count, expected) in [
            (0, "0"),
            (9999, "9999"),
            (10_000, "10.0k"),
            (999_999, "999.9k"),
            (1_250_000, "1.2M"),
            (u64::MAX, "18.4E"),
        ] {
            assert_eq!(short_count(count), expected);
        }
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
