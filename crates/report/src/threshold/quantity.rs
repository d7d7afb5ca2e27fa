//! Values with units, as people write them.

use crate::metric::Unit;

/// Times as nanoseconds.
const TIMES: [(&str, f64); 9] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3), // micro sign
    ("μs", 1e3), // Greek mu
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("min", 60e9),
    ("h", 3600e9),
];

/// Memory; a thousand without and 1 024 with an `i`.
const MEMORY: [(&str, f64); 12] = [
    ("", 1.0),
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("kiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];

/// Plain numbers.
const NUMBERS: [(&str, f64); 4] = [("", 1.0), ("k", 1e3), ("K", 1e3), ("M", 1e6)];

/// Shares; a number alone is a part of 1.
const SHARES: [(&str, f64); 2] = [("", 1.0), ("%", 0.01)];

/// Cores.
const CORES: [(&str, f64); 3] = [("", 1.0), ("core", 1.0), ("cores", 1.0)];

/// Rates as per second.
const PERIODS: [(&str, f64); 4] = [
    ("s", 1.0),
    ("min", 1.0 / 60.0),
    ("m", 1.0 / 60.0),
    ("h", 1.0 / 3600.0),
];

/// Reads a value into the unit that a figure is kept in.
pub(super) fn parse(unit: Unit, text: &str) -> Option<f64> {
    match unit {
        Unit::Nanoseconds => scaled(text, &TIMES),
        Unit::Microseconds => scaled(text, &TIMES).map(|ns| ns / 1e3),
        Unit::Seconds => scaled(text, &TIMES).map(|ns| ns / 1e9),
        Unit::Bytes => scaled(text, &MEMORY),
        Unit::Count => scaled(text, &NUMBERS),
        Unit::Cores => scaled(text, &CORES),
        // More than all of it is a forgotten sign: `delivered == 100`.
        Unit::Share => scaled(text, &SHARES).filter(|share| *share <= 1.0),
        Unit::PerSecond => rate(text),
    }
}

/// An example of a value of a unit.
pub(super) const fn example(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds | Unit::Microseconds | Unit::Seconds => "a time such as < 50ms",
        Unit::Bytes => "a size such as < 1GB or < 512MiB",
        Unit::Count => "a number such as == 0",
        Unit::Cores => "a number such as < 1.5",
        Unit::Share => "a share such as >= 83% or >= 0.83",
        Unit::PerSecond => "a rate such as >= 1000/s",
    }
}

fn rate(text: &str) -> Option<f64> {
    match text.split_once('/') {
        None => scaled(text, &NUMBERS),
        Some((number, period)) => {
            let period = period.trim();
            let (_, per_second) = PERIODS.iter().find(|(known, _)| *known == period)?;
            scaled(number.trim(), &NUMBERS).map(|number| number * per_second)
        }
    }
}

/// A number that is not negative, digits grouped with `_` as one likes, followed by a unit.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let is_of_number = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '_');
    let end = text
        .find(|letter| !is_of_number(letter))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.replace('_', "").parse().ok()?;
    let unit = unit.trim_start();
    let (_, factor) = units.iter().find(|(known, _)| *known == unit)?;
    // A hundredth is not exact in binary; a division by 100 rounds once.
    let value = if unit == "%" {
        number / 100.0
    } else {
        number * factor
    };
    value.is_finite().then_some(value)
}
