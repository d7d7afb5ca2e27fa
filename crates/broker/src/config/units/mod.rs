//! How settings with units and words are written: `"64KiB"`, `"2h"`, `"127.0.0.1:1883"`, `"auto"`.

pub(super) mod anonymous;
pub(super) mod bind;
pub(super) mod inherited_anonymous;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thrum_routing::Strategy;

use super::{Anonymous, Bind, Workers, wildcard};

/// Seconds that stand for "never": the value that MQTT gives a session that does not expire.
const NEVER: u64 = u32::MAX as u64;

const SIZE_UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];
/// In microseconds.
const TIME_UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// A value as it may stand in a file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Boolean(bool),
    Integer(u64),
    Text(String),
}

/// Defines the schema of a setting: what may be written, and the words for it.
macro_rules! schema {
    ($($name:ident: $types:tt $format:literal, $expected:literal;)*) => {$(
        #[doc = concat!("Schema of ", $expected, ".")]
        #[derive(Debug)]
        pub struct $name;

        impl $name {
            /// What is expected, in words.
            pub const EXPECTED: &str = $expected;
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": $types, "format": $format, "x-expected": $expected })
            }
        }
    )*};
}

schema! {
    ByteSizeSchema: ["integer", "string"] "size",
        "a size such as \"64KiB\", \"1MB\" or a number of bytes";
    DurationSchema: ["integer", "string"] "duration",
        "a duration such as \"10s\", \"1h30m\", \"7d\" or a number of seconds";
    WorkersSchema: ["integer", "string"] "workers", "\"auto\" or a number from 1 to 64";
    BindSchema: ["string", "integer", "array"] "addresses",
        "\"address:port\", a port, \"unix:/path\", or a list of them";
    AnonymousSchema: ["boolean", "string"] "anonymous", "\"loopback\", true or false";
    InheritedAnonymousSchema: ["boolean", "string"] "anonymous",
        "\"inherit\", \"loopback\", true or false";
    StrategySchema: ["string"] "strategy",
        "one of \"round_robin\", \"random\", \"sticky\", \"hash_client_id\", \"hash_topic\", \"local\"";
}

/// Reads a size: digits with a unit of 1,000 (`KB MB GB`) or 1,024 (`KiB MiB GiB`), in any case, or bytes alone.
pub fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text.trim())?;
    let unit = unit.trim();
    if unit.is_empty() {
        return Some(number);
    }
    let (_, bytes) = SIZE_UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    number.checked_mul(*bytes)
}

/// Writes a size with the largest unit that divides it, smallest number first.
pub fn format_size(bytes: u64) -> Option<String> {
    let (name, unit) = SIZE_UNITS
        .iter()
        .find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit))?;
    (*unit > 1).then(|| format!("{}{name}", bytes / unit))
}

/// Reads a duration: numbers with units (`d h m s ms`) one after the other, seconds alone, or `never`.
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
        let (_, micros) = TIME_UNITS.iter().find(|(name, _)| *name == unit)?;
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
    let (name, unit) = TIME_UNITS
        .iter()
        .find(|(_, unit)| micros.is_multiple_of(*unit))?;
    Some(format!("{}{name}", micros / unit))
}

/// Reads `address:port`, `localhost:port` (both loopback addresses), or `port`, `:port` and `*:port` (every address).
pub fn parse_bind(text: &str) -> Option<Vec<SocketAddr>> {
    let text = text.trim();
    if let Ok(address) = text.parse() {
        return Some(vec![address]);
    }
    if let Some(port) = text.strip_prefix("localhost:") {
        let port: u16 = port.parse().ok()?;
        return Some(vec![
            (Ipv4Addr::LOCALHOST, port).into(),
            (Ipv6Addr::LOCALHOST, port).into(),
        ]);
    }
    let port = text
        .strip_prefix("*:")
        .or_else(|| text.strip_prefix(':'))
        .unwrap_or(text);
    port.parse().ok().map(wildcard)
}

/// Reads `auto` or a number of threads.
pub fn parse_workers(text: &str) -> Option<Workers> {
    match text.trim() {
        "auto" => Some(Workers::Auto),
        number => number
            .parse()
            .ok()
            .filter(|count| (1..=64).contains(count))
            .map(Workers::Count),
    }
}

/// Digits, with `_` between them, and what follows them.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '_')
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.replace('_', "").parse().ok()?, rest))
}

fn scalar<'de, D: Deserializer<'de>>(from: D, expected: &str) -> Result<Scalar, D::Error> {
    Scalar::deserialize(from).map_err(|_| D::Error::custom(format!("expected {expected}")))
}

fn found<T, E: serde::de::Error>(value: Option<T>, expected: &str) -> Result<T, E> {
    value.ok_or_else(|| E::custom(format!("expected {expected}")))
}

/// `with` of a size, in any unsigned integer.
pub(super) mod byte_size {
    use super::{ByteSizeSchema, Deserializer, Scalar, Serialize, Serializer};

    pub(in super::super) fn deserialize<'de, D, T>(from: D) -> Result<T, D::Error>
    where
        D: Deserializer<'de>,
        T: TryFrom<u64>,
    {
        let bytes = match super::scalar(from, ByteSizeSchema::EXPECTED)? {
            Scalar::Integer(bytes) => Some(bytes),
            Scalar::Text(text) => super::parse_size(&text),
            Scalar::Boolean(_) => None,
        };
        super::found(
            bytes.and_then(|bytes| T::try_from(bytes).ok()),
            ByteSizeSchema::EXPECTED,
        )
    }

    pub(in super::super) fn serialize<T, S>(bytes: &T, to: S) -> Result<S::Ok, S::Error>
    where
        T: Copy + Into<u64>,
        S: Serializer,
    {
        let bytes: u64 = (*bytes).into();
        match super::format_size(bytes) {
            Some(text) => text.serialize(to),
            None => bytes.serialize(to),
        }
    }
}

/// `with` of a duration.
pub(super) mod duration {
    use super::{Deserializer, Duration, DurationSchema, Scalar, Serialize, Serializer};

    pub(in super::super) fn deserialize<'de, D>(from: D) -> Result<Duration, D::Error>
    where
        D: Deserializer<'de>,
    {
        let duration = match super::scalar(from, DurationSchema::EXPECTED)? {
            Scalar::Integer(seconds) => Some(Duration::from_secs(seconds)),
            Scalar::Text(text) => super::parse_duration(&text),
            Scalar::Boolean(_) => None,
        };
        super::found(duration, DurationSchema::EXPECTED)
    }

    pub(in super::super) fn serialize<S>(duration: &Duration, to: S) -> Result<S::Ok, S::Error>
    where
        S: Serializer,
    {
        match super::format_duration(*duration) {
            Some(text) => text.serialize(to),
            None => 0.serialize(to),
        }
    }
}

/// `with` of the number of worker threads.
pub(super) mod workers {
    use super::{Deserializer, Scalar, Serialize, Serializer, Workers, WorkersSchema};

    pub(in super::super) fn deserialize<'de, D>(from: D) -> Result<Workers, D::Error>
    where
        D: Deserializer<'de>,
    {
        let workers = match super::scalar(from, WorkersSchema::EXPECTED)? {
            Scalar::Integer(count) => super::parse_workers(&count.to_string()),
            Scalar::Text(text) => super::parse_workers(&text),
            Scalar::Boolean(_) => None,
        };
        super::found(workers, WorkersSchema::EXPECTED)
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde calls"
    )]
    pub(in super::super) fn serialize<S>(workers: &Workers, to: S) -> Result<S::Ok, S::Error>
    where
        S: Serializer,
    {
        match workers {
            Workers::Auto => "auto".serialize(to),
            Workers::Count(count) => count.serialize(to),
        }
    }
}

/// `with` of the strategy of shared subscriptions.
pub(super) mod strategy {
    use super::{Deserializer, Scalar, Serialize, Serializer, Strategy, StrategySchema};

    pub(in super::super) fn deserialize<'de, D>(from: D) -> Result<Strategy, D::Error>
    where
        D: Deserializer<'de>,
    {
        let strategy = match super::scalar(from, StrategySchema::EXPECTED)? {
            Scalar::Text(text) => text.parse().ok(),
            Scalar::Boolean(_) | Scalar::Integer(_) => None,
        };
        super::found(strategy, StrategySchema::EXPECTED)
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde calls"
    )]
    pub(in super::super) fn serialize<S>(strategy: &Strategy, to: S) -> Result<S::Ok, S::Error>
    where
        S: Serializer,
    {
        strategy.name().serialize(to)
    }
}
