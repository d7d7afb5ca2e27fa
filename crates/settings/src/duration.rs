//! Durations.

use std::time::Duration;

use serde::{Deserializer, Serialize, Serializer};

use crate::{Scalar, found, scalar, schema, split_number};

/// Seconds that stand for "never": the value that MQTT gives a session that does not expire.
const NEVER: u64 = u32::MAX as u64;

/// In microseconds.
const UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

schema! {
    DurationSchema: ["integer", "string"] "duration",
        "a duration such as \"10s\", \"1h30m\", \"7d\" or a number of seconds";
}

/// Reads a duration: numbers with units (`d h m s ms us`) one after the other, seconds alone, or
/// `never`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest == "never" {
        return Some(Duration::from_secs(NEVER));
    }
    if let Ok(seconds) = rest.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, tail) = split_number(rest)?;
        let letters = tail
            .find(|letter: char| !letter.is_ascii_alphabetic())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let (_, micros) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(number.checked_mul(*micros)?)?;
        rest = tail.trim_start();
    }
    (!text.trim().is_empty()).then(|| Duration::from_micros(total))
}

/// Writes a duration with the largest unit that divides it.
pub fn format_duration(duration: Duration) -> Option<String> {
    if duration.as_secs() == NEVER {
        return Some("never".to_owned());
    }
    let micros = u64::try_from(duration.as_micros())
        .ok()
        .filter(|micros| *micros > 0)?;
    let (name, unit) = UNITS
        .iter()
        .find(|(_, unit)| micros.is_multiple_of(*unit))?;
    Some(format!("{}{name}", micros / unit))
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
