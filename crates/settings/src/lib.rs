//! The notation of settings with units and words, the same everywhere in the configuration:
//! `"64KiB"`, `"2h"`, `"loopback"`.
//!
//! An error about an unknown word suggests the nearest known one: [`nearest()`]; an error about a
//! part that the program was built without names the remedy: [`LeftOut`]. A [`problem`] shows its
//! place in the file.
//!
//! A type or a unit that several parts of the configuration use is defined here; one that only one
//! part uses is defined there, with [`schema!`], [`scalar`] and [`found`].
//!
//! Invariant: every value that a `serialize` in here writes is read back as the same value by its
//! `deserialize`.

pub mod anonymous;
pub mod byte_size;
pub mod client_ids;
pub mod duration;
mod left_out;
mod nearest;
pub mod problem;
#[cfg(test)]
mod tests;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

pub use anonymous::{Anonymous, AnonymousSchema};
pub use byte_size::{ByteSizeSchema, format_size, parse_size};
pub use client_ids::{ClientIdPattern, ClientIdPatternSchema, Takeover};
pub use duration::{DurationSchema, format_duration, format_span, parse_duration, parse_span};
pub use left_out::LeftOut;
pub use nearest::{edit_distance, nearest};

#[doc(hidden)]
pub use schemars;

/// A value in a file.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// `true` or `false`.
    Boolean(bool),
    /// A non-negative number.
    Integer(u64),
    /// A text in quotes.
    Text(String),
}

/// Defines the schema of a setting: the accepted types, and their description.
#[macro_export]
macro_rules! schema {
    ($($name:ident: $types:tt $format:literal, $expected:literal;)*) => {$(
        #[doc = concat!("Schema of ", $expected, ".")]
        #[derive(Debug)]
        pub struct $name;

        impl $name {
            /// The accepted values, in words.
            pub const EXPECTED: &str = $expected;
        }

        impl $crate::schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut $crate::schemars::SchemaGenerator) -> $crate::schemars::Schema {
                $crate::schemars::json_schema!({
                    "type": $types,
                    "format": $format,
                    "x-expected": $expected
                })
            }
        }
    )*};
}

schema! {
    SecretTextsSchema: ["array"] "secret-texts", "a list of texts in quotes: [\"name: value\"]";
    TextsSchema: ["array"] "texts", "a list of texts in quotes: [\"a\", \"b\"]";
}

/// Reads a value.
///
/// # Errors
/// It is none of the three: the message describes the accepted values.
pub fn scalar<'de, D: Deserializer<'de>>(from: D, expected: &str) -> Result<Scalar, D::Error> {
    Scalar::deserialize(from).map_err(|_| D::Error::custom(format!("expected {expected}")))
}

/// Wraps the result of parsing a value.
///
/// # Errors
/// It could not be parsed: the message describes the accepted values.
pub fn found<T, E: serde::de::Error>(value: Option<T>, expected: &str) -> Result<T, E> {
    value.ok_or_else(|| E::custom(format!("expected {expected}")))
}
