//! How settings with units and words are written: `"10s"`, `"loopback"`; the same as everywhere in the configuration.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Anonymous;

/// In milliseconds, largest first.
const TIME_UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
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
    DurationSchema: ["integer", "string"] "duration",
        "a duration such as \"10s\", \"1h30m\", \"7d\" or a number of seconds";
    AnonymousSchema: ["boolean", "string"] "anonymous", "\"loopback\", true or false";
    TextsSchema: ["array"] "texts", "a list of texts in quotes: [\"a\", \"b\"]";
}

/// Reads numbers with units (`d h m s ms`) one after the other, or seconds alone.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if let Ok(seconds) = rest.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '_')?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|letter: char| !letter.is_ascii_alphabetic());
        let (unit, tail) = tail.split_at(letters.unwrap_or(tail.len()));
        let (_, millis) = TIME_UNITS.iter().find(|(name, _)| *name == unit)?;
        let number: u64 = number.replace('_', "").parse().ok()?;
        total = total.checked_add(number.checked_mul(*millis)?)?;
        rest = tail.trim_start();
    }
    (!text.trim().is_empty()).then(|| Duration::from_millis(total))
}

/// `with` of a duration.
pub(crate) mod duration {
    use super::{
        Deserialize, Deserializer, Duration, DurationSchema, Scalar, Serialize, Serializer,
        TIME_UNITS,
    };
    use serde::de::Error as _;

    pub(crate) fn deserialize<'de, D>(from: D) -> Result<Duration, D::Error>
    where
        D: Deserializer<'de>,
    {
        let duration = match Scalar::deserialize(from) {
            Ok(Scalar::Integer(seconds)) => Some(Duration::from_secs(seconds)),
            Ok(Scalar::Text(text)) => super::parse_duration(&text),
            Ok(Scalar::Boolean(_)) | Err(_) => None,
        };
        let expected = || D::Error::custom(format!("expected {}", DurationSchema::EXPECTED));
        duration.ok_or_else(expected)
    }

    pub(crate) fn serialize<S>(duration: &Duration, to: S) -> Result<S::Ok, S::Error>
    where
        S: Serializer,
    {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let unit = TIME_UNITS
            .iter()
            .find(|(_, unit)| millis > 0 && millis.is_multiple_of(*unit));
        match unit {
            Some((name, unit)) => format!("{}{name}", millis / unit).serialize(to),
            None => 0.serialize(to),
        }
    }
}

/// `with` of who may be anonymous.
pub(crate) mod anonymous {
    use super::{
        Anonymous, AnonymousSchema, Deserialize, Deserializer, Scalar, Serialize, Serializer,
    };
    use serde::de::Error as _;

    pub(crate) fn deserialize<'de, D>(from: D) -> Result<Anonymous, D::Error>
    where
        D: Deserializer<'de>,
    {
        match Scalar::deserialize(from) {
            Ok(Scalar::Boolean(true)) => Ok(Anonymous::Everyone),
            Ok(Scalar::Boolean(false)) => Ok(Anonymous::Nobody),
            Ok(Scalar::Text(text)) if text == "loopback" => Ok(Anonymous::Loopback),
            Ok(_) | Err(_) => {
                let expected = AnonymousSchema::EXPECTED;
                Err(D::Error::custom(format!("expected {expected}")))
            }
        }
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde calls"
    )]
    pub(crate) fn serialize<S>(anonymous: &Anonymous, to: S) -> Result<S::Ok, S::Error>
    where
        S: Serializer,
    {
        match anonymous {
            Anonymous::Loopback => "loopback".serialize(to),
            Anonymous::Everyone => true.serialize(to),
            Anonymous::Nobody => false.serialize(to),
        }
    }
}
