//! How rates are written: `"1000/s"`, `"10/m"`, `"1MiB/s burst 4MiB"`, and 0 for no limit.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thrum_protection::Rate;

use super::units;

/// Periods written with their unit alone.
const PERIODS: [(&str, Duration); 4] = [
    ("s", Duration::from_secs(1)),
    ("m", Duration::from_mins(1)),
    ("h", Duration::from_hours(1)),
    ("d", Duration::from_hours(24)),
];

/// Parses `"1000/s"`, `"100/10s"`, `"10/m burst 50"`, or a number a second; `number` parses the
/// amounts.
fn parse(text: &str, number: fn(&str) -> Option<u64>) -> Option<Rate> {
    let (rate, burst) = match text.split_once("burst") {
        Some((rate, burst)) => (rate, number(burst.trim()).filter(|burst| *burst > 0)?),
        None => (text, 0),
    };
    let (amount, per) = match rate.split_once('/') {
        Some((amount, per)) => (amount, parse_period(per.trim())?),
        None => (rate, Duration::from_secs(1)),
    };
    Rate::new(number(amount.trim())?, per, burst)
}

/// Formats a rate so that it parses as the same rate; none for no limit.
fn format(rate: &Rate, number: fn(u64) -> String) -> Option<String> {
    if rate.is_none() {
        return None;
    }
    let unit = PERIODS.iter().find(|(_, period)| *period == rate.per());
    let per = match unit {
        Some((unit, _)) => (*unit).to_owned(),
        None => units::format_duration(rate.per())?,
    };
    let burst = if rate.burst() == rate.amount() {
        String::new()
    } else {
        format!(" burst {}", number(rate.burst()))
    };
    Some(format!("{}/{per}{burst}", number(rate.amount())))
}

/// A rate of events as a file has it; none for no limit.
pub fn rate_text(rate: &Rate) -> Option<String> {
    format(rate, |count| count.to_string())
}

/// A rate of bytes as a file has it; none for no limit.
pub fn byte_rate_text(rate: &Rate) -> Option<String> {
    format(rate, format_bytes)
}

/// A number of events, such as messages.
fn parse_count(text: &str) -> Option<u64> {
    text.replace('_', "").parse().ok()
}

fn format_bytes(bytes: u64) -> String {
    units::format_size(bytes).unwrap_or_else(|| bytes.to_string())
}

/// `s`, `m`, `h`, `d`, or a duration such as `10s`.
fn parse_period(text: &str) -> Option<Duration> {
    let is_unit = text.starts_with(|letter: char| letter.is_ascii_alphabetic());
    if is_unit {
        let (_, period) = PERIODS.iter().find(|(unit, _)| *unit == text)?;
        return Some(*period);
    }
    units::parse_duration(text)
}

/// A rate as written in a file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u64),
    Text(String),
}

fn read<'de, D: Deserializer<'de>>(
    from: D,
    number: fn(&str) -> Option<u64>,
    expected: &str,
) -> Result<Rate, D::Error> {
    let rate = match Written::deserialize(from) {
        Ok(Written::Number(amount)) => Rate::new(amount, Duration::from_secs(1), 0),
        Ok(Written::Text(text)) => parse(text.trim(), number),
        Err(_) => None,
    };
    rate.ok_or_else(|| serde::de::Error::custom(format!("expected {expected}")))
}

fn write<S: Serializer>(rate: &Rate, number: fn(u64) -> String, to: S) -> Result<S::Ok, S::Error> {
    match format(rate, number) {
        Some(text) => text.serialize(to),
        None => 0.serialize(to),
    }
}

/// Schema of a rate of things: messages, connections.
#[derive(Debug)]
pub struct RateSchema;

impl RateSchema {
    /// The expected form, for errors.
    pub const EXPECTED: &str =
        "a rate such as \"1000/s\", \"10/m\", \"100/s burst 500\", or 0 for no limit";
}

/// Schema of a rate of bytes.
#[derive(Debug)]
pub struct ByteRateSchema;

impl ByteRateSchema {
    /// The expected form, for errors.
    pub const EXPECTED: &str =
        "a rate of bytes such as \"1MiB/s\", \"64KiB/s burst 1MiB\", or 0 for no limit";
}

fn schema(expected: &str) -> Schema {
    json_schema!({ "type": ["integer", "string"], "format": "rate", "x-expected": expected })
}

impl JsonSchema for RateSchema {
    fn schema_name() -> Cow<'static, str> {
        "RateSchema".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema(Self::EXPECTED)
    }
}

impl JsonSchema for ByteRateSchema {
    fn schema_name() -> Cow<'static, str> {
        "ByteRateSchema".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema(Self::EXPECTED)
    }
}

/// `with` of a rate of things.
pub(super) mod count {
    use super::{Deserializer, Rate, RateSchema, Serializer};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Rate, D::Error> {
        super::read(from, super::parse_count, RateSchema::EXPECTED)
    }

    pub(in super::super) fn serialize<S: Serializer>(
        rate: &Rate,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        super::write(rate, |count| count.to_string(), to)
    }
}

/// `with` of a rate of bytes.
pub(super) mod bytes {
    use super::{ByteRateSchema, Deserializer, Rate, Serializer, units};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Rate, D::Error> {
        super::read(from, units::parse_size, ByteRateSchema::EXPECTED)
    }

    pub(in super::super) fn serialize<S: Serializer>(
        rate: &Rate,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        super::write(rate, super::format_bytes, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, number: fn(&str) -> Option<u64>, expected: Option<(u64, u64, u64)>) {
        let rate = parse(text, number);
        let found = rate.map(|rate| (rate.amount(), rate.per().as_secs(), rate.burst()));
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn a_rate_is_an_amount_a_period_and_a_burst() {
        for (text, expected) in [
            ("1000/s", Some((1000, 1, 1000))),
            ("1_000 / s", Some((1000, 1, 1000))),
            ("10/m", Some((10, 60, 10))),
            ("10/h burst 50", Some((10, 3600, 50))),
            ("100/10s burst 1", Some((100, 10, 1))),
            ("5/d", Some((5, 86_400, 5))),
            ("7", Some((7, 1, 7))),
            ("0", Some((0, 0, 0))),
            ("0/s", Some((0, 0, 0))),
            ("", None),
            ("/s", None),
            ("10/", None),
            ("10/2d", None),
            ("10/0s", None),
            ("10/w", None),
            ("10/s burst 0", None),
            ("0/s burst 5", None),
            ("10/s burst", None),
            ("1KB/s", None),
            ("-1/s", None),
            ("1000000000001/s", None),
        ] {
            check(text, parse_count, expected);
        }
    }

    #[test]
    fn a_rate_of_bytes_has_the_units_of_sizes() {
        for (text, expected) in [
            ("1MiB/s", Some((1 << 20, 1, 1 << 20))),
            ("64KiB/s burst 1MiB", Some((65_536, 1, 1 << 20))),
            ("1GB/h", Some((1_000_000_000, 3600, 1_000_000_000))),
            ("500", Some((500, 1, 500))),
            ("1XB/s", None),
        ] {
            check(text, units::parse_size, expected);
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for text in [
            "1000/s",
            "10/m",
            "10/h burst 50",
            "100/10s",
            "5/d burst 1",
            "3/250ms",
        ] {
            let rate = parse(text, parse_count).unwrap();
            assert_eq!(format(&rate, |count| count.to_string()).unwrap(), text);
        }
        for text in ["1MiB/s", "64KiB/s burst 1MiB", "1500/m", "1GB/d"] {
            let rate = parse(text, units::parse_size).unwrap();
            assert_eq!(format(&rate, format_bytes).unwrap(), text);
        }
        assert_eq!(format(&Rate::NONE, format_bytes), None);
        // A burst of the amount itself is what it is without one.
        assert_eq!(parse("5/s burst 5", parse_count), Some(Rate::per_second(5)));
    }
}
