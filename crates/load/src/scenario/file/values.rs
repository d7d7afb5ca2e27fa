//! The kinds of values in a scenario file: each reads one value or reports what it expects.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use thrum_codec::{QoS, Version};
use thrum_figures::fraction;
use thrum_settings::{parse_size, parse_span};
use toml_edit::Value;

use super::super::{Arrivals, PAYLOAD_BYTES_MIN, PayloadSpec, Rate, Shape};
use super::reader::written;

/// Largest payload: as much as fits a packet of MQTT, less a topic.
const PAYLOAD_BYTES_MAX: u64 = 256_000_000;

/// Most steps of a rate.
const RATES_MAX: usize = 100;

/// Longest span: a year.
const SPAN_MAX: Duration = Duration::from_hours(365 * 24);

type Read<T> = Result<T, String>;

/// The error of a value.
fn expected(what: &str, value: &Value) -> String {
    format!("expected {what}, found {}", written(value))
}

pub(super) fn text(value: &Value) -> Read<String> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| expected("a text in quotes", value))
}

pub(super) fn flag(value: &Value) -> Read<bool> {
    value
        .as_bool()
        .ok_or_else(|| expected("true or false", value))
}

/// One text or a list of texts.
pub(super) fn texts(value: &Value) -> Read<Vec<String>> {
    match value {
        Value::Array(list) => list.iter().map(text).collect(),
        value => {
            Ok(vec![text(value).map_err(|_| {
                expected("a text or a list of texts", value)
            })?])
        }
    }
}

/// Names and texts: `{ name = "text" }`.
pub(super) fn properties(value: &Value) -> Read<Vec<(String, String)>> {
    let table = value
        .as_inline_table()
        .ok_or_else(|| expected("a table such as { name = \"text\" }", value))?;
    let pairs = table
        .iter()
        .map(|(name, value)| Ok((name.to_owned(), text(value)?)));
    pairs.collect()
}

/// A whole number from 1 to `max`.
pub(super) fn count<T: TryFrom<i64> + Into<u64>>(max: T) -> impl FnOnce(&Value) -> Read<T> {
    let max: u64 = max.into();
    move |value| {
        let number = value.as_integer().filter(|number| *number > 0);
        number
            .filter(|number| u64::try_from(*number).is_ok_and(|number| number <= max))
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| expected(&format!("a whole number from 1 to {max}"), value))
    }
}

pub(super) fn qos(value: &Value) -> Read<QoS> {
    let level = value
        .as_integer()
        .and_then(|level| u8::try_from(level).ok());
    level
        .and_then(|level| QoS::try_from(level).ok())
        .ok_or_else(|| expected("0, 1 or 2", value))
}

pub(super) fn version(value: &Value) -> Read<Version> {
    let written = match value {
        Value::String(text) => text.value().clone(),
        Value::Integer(level) => level.value().to_string(),
        Value::Float(number) => format!("{:.1}", number.value()),
        _ => String::new(),
    };
    match written.as_str() {
        "3.1" | "3" => Ok(Version::V31),
        "3.1.1" | "4" => Ok(Version::V311),
        "5.0" | "5" => Ok(Version::V5),
        _ => Err(expected("\"3.1\", \"3.1.1\" or 5", value)),
    }
}

/// A span of time: `"90s"`, `"1.5m"`, or seconds.
pub(super) fn span(value: &Value) -> Read<Duration> {
    let span = match value {
        Value::String(text) => parse_span(text.value()),
        value => number(value).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
    };
    span.filter(|span| *span <= SPAN_MAX)
        .ok_or_else(|| expected("a span of time such as \"90s\", \"500ms\", \"5m\"", value))
}

/// A span of whole seconds that fits the field of the protocol.
pub(super) fn seconds<T: TryFrom<u64>>(value: &Value) -> Read<T> {
    let span = span(value)?;
    Some(span)
        .filter(|span| span.subsec_nanos() == 0)
        .and_then(|span| T::try_from(span.as_secs()).ok())
        .ok_or_else(|| expected("whole seconds, not more than the protocol allows", value))
}

pub(super) fn rate(value: &Value) -> Read<Rate> {
    let rate = match value {
        Value::String(text) => Rate::parse(text.value()),
        value => number(value).and_then(|number| Rate::parse(&number.to_string())),
    };
    rate.ok_or_else(|| expected("a rate such as 10, \"10/s\", \"6/m\", \"1/h\"", value))
}

/// Connections per second: a whole number or `"100/s"`.
pub(super) fn connect_rate(value: &Value) -> Read<u32> {
    let rate = match value {
        Value::String(text) => parsed(text.value().trim_end_matches("/s")),
        Value::Integer(number) => u32::try_from(*number.value()).ok(),
        _ => None,
    };
    rate.filter(|rate| *rate > 0)
        .ok_or_else(|| expected("connections per second such as 100 or \"100/s\"", value))
}

/// Bytes per second: `"10KB/s"`.
pub(super) fn byte_rate(value: &Value) -> Read<u64> {
    let rate = value
        .as_str()
        .and_then(|text| parse_size(text.strip_suffix("/s")?));
    rate.filter(|rate| *rate > 0)
        .ok_or_else(|| expected("bytes per second such as \"10KB/s\"", value))
}

/// `"16B"`, `"random:16B"`, `"file:PATH"`, `{ json = "…" }`, `{ text = "…" }`, or a text that
/// begins with `{`.
pub(super) fn payload(value: &Value) -> Read<PayloadSpec> {
    let wrong = || {
        expected(
            "\"16B\", \"random:1KiB\", \"file:PATH\", { json = \"…\" } or { text = \"…\" }",
            value,
        )
    };
    match value {
        Value::Integer(bytes) => {
            let bytes = u64::try_from(*bytes.value()).map_err(|_| wrong())?;
            payload_bytes(bytes).map(PayloadSpec::Size)
        }
        Value::String(text) => {
            let text = text.value();
            if text.starts_with('{') {
                Ok(PayloadSpec::Template(text.clone()))
            } else if let Some(path) = text.strip_prefix("file:").filter(|path| !path.is_empty()) {
                Ok(PayloadSpec::File(PathBuf::from(path)))
            } else if let Some(bytes) = text.strip_prefix("random:") {
                payload_bytes(parse_size(bytes).ok_or_else(wrong)?).map(PayloadSpec::Random)
            } else {
                payload_bytes(parse_size(text).ok_or_else(wrong)?).map(PayloadSpec::Size)
            }
        }
        Value::InlineTable(table) => {
            let mut fields = table.iter();
            match (fields.next(), fields.next()) {
                (Some(("json" | "text", value)), None) => text(value).map(PayloadSpec::Template),
                _ => Err(wrong()),
            }
        }
        _ => Err(wrong()),
    }
}

fn payload_bytes(bytes: u64) -> Read<u32> {
    if bytes < u64::from(PAYLOAD_BYTES_MIN) {
        return Err(format!(
            "{bytes} bytes are too few: each message carries its publisher, its sequence and its send time, {PAYLOAD_BYTES_MIN} bytes in all"
        ));
    }
    u32::try_from(bytes)
        .ok()
        .filter(|_| bytes <= PAYLOAD_BYTES_MAX)
        .ok_or_else(|| format!("{bytes} bytes are too many: a packet takes {PAYLOAD_BYTES_MAX}"))
}

/// `"constant"`, `"ramp to 500/s"` or `{ steps = ["100/s", "200/s"] }`.
pub(super) fn shape(value: &Value) -> Read<Shape> {
    let wrong = || {
        expected(
            "\"constant\", \"ramp to 500/s\" or { steps = [\"100/s\", \"200/s\"] }",
            value,
        )
    };
    if let Some(text) = value.as_str() {
        return match text.strip_prefix("ramp to ") {
            _ if text == "constant" => Ok(Shape::Constant),
            Some(to) => {
                let to = Rate::parse(to.trim()).ok_or_else(wrong)?;
                Ok(Shape::Ramp { to })
            }
            None => Err(wrong()),
        };
    }
    let table = value.as_inline_table().filter(|table| table.len() == 1);
    let steps = table
        .and_then(|table| table.get("steps")?.as_array())
        .ok_or_else(wrong)?;
    let rates = steps.iter().map(rate).collect::<Read<Vec<Rate>>>()?;
    match rates.len() {
        1..=RATES_MAX => Ok(Shape::Steps { rates }),
        number => Err(format!("{number} steps: give 1 to {RATES_MAX}")),
    }
}

/// `"even"`, `"poisson"` or `"burst"`.
pub(super) fn arrivals(value: &Value) -> Read<Arrivals> {
    let arrivals = value.as_str().and_then(Arrivals::parse);
    arrivals.ok_or_else(|| expected("\"even\", \"poisson\" or \"burst\"", value))
}

/// A part of the whole: `"50%"` or 0.5.
pub(super) fn share(value: &Value) -> Read<f64> {
    let share = match value {
        Value::String(text) => {
            let percent = text.value().strip_suffix('%');
            percent.and_then(|text| Some(parsed::<f64>(text.trim())? / 100.0))
        }
        value => number(value),
    };
    share
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| expected("a share above 0 % and up to \"100%\" (1.0)", value))
}

/// A factor above 0.
pub(super) fn factor(value: &Value) -> Read<f64> {
    number(value)
        .filter(|factor| *factor > 0.0 && factor.is_finite())
        .ok_or_else(|| expected("a number above 0", value))
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number.value()),
        Value::Integer(number) => u64::try_from(*number.value()).ok().map(fraction),
        _ => None,
    }
}

fn parsed<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a value from its TOML.
    fn check<T>(read: impl FnOnce(&Value) -> Read<T>, toml: &str) -> Read<T> {
        read(&toml.parse().unwrap())
    }

    #[test]
    fn sizes_have_decimal_and_binary_units() {
        for (text, bytes) in [
            ("16", 16),
            ("16B", 16),
            ("1KB", 1_000),
            ("8KiB", 8_192),
            ("2 MB", 2_000_000),
            ("1gib", 1 << 30),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in ["", "B", "1.5KB", "1XB", "-1"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
        assert_eq!(check(byte_rate, "\"10KB/s\""), Ok(10_000));
        assert!(check(byte_rate, "\"10KB\"").is_err());
        assert!(check(byte_rate, "\"0B/s\"").is_err());
    }

    #[test]
    fn payloads_are_sizes_files_or_texts() {
        for (toml, wanted) in [
            ("16", PayloadSpec::Size(16)),
            ("\"128B\"", PayloadSpec::Size(128)),
            ("\"random:1KiB\"", PayloadSpec::Random(1_024)),
            ("\"file:a.bin\"", PayloadSpec::File("a.bin".into())),
            ("'{\"a\":{i}}'", PayloadSpec::Template("{\"a\":{i}}".into())),
            (
                "{ text = \"a {i}\" }",
                PayloadSpec::Template("a {i}".into()),
            ),
        ] {
            assert_eq!(check(payload, toml), Ok(wanted), "{toml}");
        }
        for toml in [
            "15",
            "\"random:8B\"",
            "\"file:\"",
            "\"big\"",
            "{ xml = \"\" }",
            "-1",
            "\"1GiB\"",
        ] {
            assert!(check(payload, toml).is_err(), "{toml}");
        }
    }

    #[test]
    fn versions_are_levels_or_names() {
        for (toml, wanted) in [
            ("3", Version::V31),
            ("3.1", Version::V31),
            ("\"3.1.1\"", Version::V311),
            ("4", Version::V311),
            ("5", Version::V5),
            ("5.0", Version::V5),
            ("\"5.0\"", Version::V5),
        ] {
            assert_eq!(check(version, toml), Ok(wanted), "{toml}");
        }
        assert_eq!(
            check(version, "6").unwrap_err(),
            "expected \"3.1\", \"3.1.1\" or 5, found 6"
        );
    }

    #[test]
    fn shapes_are_constant_ramps_or_steps() {
        assert_eq!(check(arrivals, "\"burst\""), Ok(Arrivals::Burst));
        assert!(check(arrivals, "\"random\"").is_err() && check(arrivals, "1").is_err());
        assert_eq!(check(shape, "\"constant\""), Ok(Shape::Constant));
        let to = Rate::per_second(500);
        assert_eq!(check(shape, "\"ramp to 500/s\""), Ok(Shape::Ramp { to }));
        let rates = vec![Rate::per_second(1), Rate::per_second(20)];
        assert_eq!(
            check(shape, "{ steps = [1, \"20/s\"] }"),
            Ok(Shape::Steps { rates })
        );
        for toml in [
            "\"ramp\"",
            "{ steps = [] }",
            "{ steps = [0] }",
            "{ rates = [1] }",
            "1",
        ] {
            assert!(check(shape, toml).is_err(), "{toml}");
        }
    }

    #[test]
    fn shares_and_counts_have_bounds() {
        assert_eq!(check(share, "\"25%\""), Ok(0.25));
        assert_eq!(check(share, "1"), Ok(1.0));
        for toml in ["0", "1.1", "\"0%\"", "\"101%\"", "\"half\"", "nan"] {
            assert!(check(share, toml).is_err(), "{toml}");
        }
        assert_eq!(check(count(u16::MAX), "65_535"), Ok(u16::MAX));
        assert!(check(count(u16::MAX), "65_536").is_err());
        assert!(check(count(u16::MAX), "0").is_err());
        assert_eq!(check(seconds::<u16>, "\"5m\""), Ok(300));
        assert!(check(seconds::<u16>, "\"1.5s\"").is_err());
        assert!(check(seconds::<u16>, "\"20h\"").is_err());
        let days = Duration::from_hours(36);
        assert_eq!(check(span, "\"1d12h\""), Ok(days));
        for text in ["\"2w\"", "\"never\"", "\"366d\""] {
            assert!(check(span, text).is_err(), "{text}");
        }
    }
}
