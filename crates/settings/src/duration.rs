//! Durations.

use std::time::Duration;

use serde::{Deserializer, Serialize, Serializer};

use crate::{Scalar, found, scalar, schema};

/// Seconds that stand for "never": the value that MQTT gives a session that does not expire.
const NEVER: u64 = u32::MAX as u64;

/// In nanoseconds, from the largest on; of two names of a unit the first one is written.
const UNITS: [(&str, u128); 7] = [
    ("d", 86_400 * SECOND_NS),
    ("h", 3_600 * SECOND_NS),
    ("m", 60 * SECOND_NS),
    ("min", 60 * SECOND_NS),
    ("s", SECOND_NS),
    ("ms", 1_000_000),
    ("us", MICROSECOND_NS),
];
const SECOND_NS: u128 = 1_000_000_000;
const MICROSECOND_NS: u128 = 1_000;

/// Most digits behind a point: a day has no more nanoseconds than that.
const FRACTION_DIGITS_MAX: usize = 14;

schema! {
    DurationSchema: ["integer", "string"] "duration",
        "a duration such as \"10s\", \"1h30m\", \"7d\" or a number of seconds";
}

/// Reads a setting that is a span, or `never`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    match text.trim() {
        "never" => Some(Duration::from_secs(NEVER)),
        span => parse_span(span),
    }
}

/// Reads a span: numbers with units (`d h m min s ms us`) one after the other, or seconds alone; a
/// number may have a fraction.
pub fn parse_span(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Some((number, "")) = Number::split(text) {
        return duration(number.of(SECOND_NS)?);
    }
    let mut rest = text;
    let mut total_ns: u128 = 0;
    while !rest.is_empty() {
        let (number, tail) = Number::split(rest)?;
        let letters = tail
            .find(|letter: char| !letter.is_ascii_alphabetic())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let (_, unit_ns) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total_ns = total_ns.checked_add(number.of(*unit_ns)?)?;
        rest = tail.trim_start();
    }
    (!text.is_empty()).then(|| duration(total_ns)).flatten()
}

fn duration(ns: u128) -> Option<Duration> {
    let seconds = u64::try_from(ns / SECOND_NS).ok()?;
    let rest = u32::try_from(ns % SECOND_NS).ok()?;
    Some(Duration::new(seconds, rest))
}

/// A number that is not negative, as written.
struct Number {
    /// Without its point.
    digits: u64,
    /// Ten to the power of its digits behind the point.
    divisor: u128,
}

impl Number {
    /// Splits digits, with `_` between them and at most one point, from the rest.
    fn split(text: &str) -> Option<(Self, &str)> {
        let end = text
            .find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '_' | '.'))
            .unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        let number = number.replace('_', "");
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        if fraction.len() > FRACTION_DIGITS_MAX {
            return None;
        }
        let digits = format!("{whole}{fraction}").parse().ok()?;
        let divisor = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
        Some((Self { digits, divisor }, rest))
    }

    /// So many units, to the nearest nanosecond.
    fn of(&self, unit_ns: u128) -> Option<u128> {
        let product = u128::from(self.digits).checked_mul(unit_ns)?;
        Some((product + self.divisor / 2) / self.divisor)
    }
}

/// Writes a setting; none if it is zero.
pub fn format_duration(duration: Duration) -> Option<String> {
    if duration.as_secs() == NEVER {
        return Some("never".to_owned());
    }
    (!duration.is_zero()).then(|| format_span(duration))
}

/// Writes a span as one whole number, with the largest unit that divides it; only a part of a
/// microsecond makes it a fraction.
pub fn format_span(span: Duration) -> String {
    let ns = span.as_nanos();
    if ns == 0 {
        return "0s".to_owned();
    }
    let unit = UNITS.iter().find(|(_, unit)| ns.is_multiple_of(*unit));
    if let Some((name, unit)) = unit {
        return format!("{}{name}", ns / unit);
    }
    let (whole, part) = (ns / MICROSECOND_NS, ns % MICROSECOND_NS);
    format!("{whole}.{part:03}us")
}

/// Reads a duration from a file.
///
/// # Errors
/// It is not a duration.
pub fn deserialize<'de, D>(from: D) -> Result<Duration, D::Error>
where
    D: Deserializer<'de>,
{
    let duration = match scalar(from, DurationSchema::EXPECTED)? {
        Scalar::Integer(seconds) => Some(Duration::from_secs(seconds)),
        Scalar::Text(text) => parse_duration(&text),
        Scalar::Boolean(_) => None,
    };
    found(duration, DurationSchema::EXPECTED)
}

/// Writes a duration with a unit.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S>(duration: &Duration, to: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
{
    match format_duration(*duration) {
        Some(text) => text.serialize(to),
        None => 0.serialize(to),
    }
}
