//! Sizes in bytes; with serde's `with` in any unsigned integer.

use serde::{Deserializer, Serialize, Serializer};

use crate::{Scalar, found, scalar, schema};

const UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

schema! {
    ByteSizeSchema: ["integer", "string"] "size",
        "a size such as \"64KiB\", \"1MB\" or a number of bytes";
}

/// Reads a size: digits with a unit of 1,000 (`KB MB GB`) or 1,024 (`KiB MiB GiB`), in any case, or
/// bytes alone.
pub fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text.trim())?;
    let unit = unit.trim();
    if unit.is_empty() {
        return Some(number);
    }
    let (_, bytes) = UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    number.checked_mul(*bytes)
}

/// Splits digits, with `_` between them, from the rest.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '_')
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.replace('_', "").parse().ok()?, rest))
}

/// Writes a size with the largest unit that divides it, smallest number first.
pub fn format_size(bytes: u64) -> Option<String> {
    let (name, unit) = UNITS
        .iter()
        .find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit))?;
    (*unit > 1).then(|| format!("{}{name}", bytes / unit))
}

/// Reads a size from a file.
///
/// # Errors
/// It is not a size, or too large for the type.
pub fn deserialize<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let bytes = match scalar(from, ByteSizeSchema::EXPECTED)? {
        Scalar::Integer(bytes) => Some(bytes),
        Scalar::Text(text) => parse_size(&text),
        Scalar::Boolean(_) => None,
    };
    found(
        bytes.and_then(|bytes| T::try_from(bytes).ok()),
        ByteSizeSchema::EXPECTED,
    )
}

/// Writes a size with a unit.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<T, S>(bytes: &T, to: S) -> Result<S::Ok, S::Error>
where
    T: Copy + Into<u64>,
    S: Serializer,
{
    let bytes: u64 = (*bytes).into();
    match format_size(bytes) {
        Some(text) => text.serialize(to),
        None => bytes.serialize(to),
    }
}
