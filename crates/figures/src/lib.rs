//! Figures as text, and whole numbers as fractions: the only place where units are chosen.
//!
//! Invariant: a figure has the same form in every place.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod utc;

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use core::time::Duration;

pub use utc::utc_text;

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// A whole number as a fraction; exact up to 2^53.
#[expect(
    clippy::cast_precision_loss,
    reason = "figures to display; no count reaches 2^53"
)]
pub const fn fraction(whole: u64) -> f64 {
    whole as f64
}

/// A 32-bit number as an index; every target has at least 32-bit addresses.
pub const fn as_index(number: u32) -> usize {
    number as usize
}

/// Quotient of two counts; 0 when there is nothing to divide by.
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        fraction(part) / fraction(whole)
    }
}

/// Nanoseconds of a duration; saturates after 584 years.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A count with thin groups of three digits: `15 000 000`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A number with its significant digits: `0.003`, `0.81`, `3.9`, `41`, `1 204`.
pub fn figure(value: f64) -> String {
    // A number that rounds up to four digits has four digits.
    if value >= 999.5 {
        count(whole(value))
    } else if value >= 10.0 {
        format!("{value:.0}")
    } else if value >= 1.0 {
        trimmed(format!("{value:.1}"))
    } else if value >= 0.01 {
        trimmed(format!("{value:.2}"))
    } else {
        trimmed(format!("{value:.3}"))
    }
}

/// A rate per second: `49 998/s`.
pub fn rate(value: f64) -> String {
    format!("{}/s", figure(value))
}

/// A latency: `41µs`, `810µs`, `3.9ms`, `1.2s`; a number that rounds up to a thousand has the next
/// unit.
pub fn latency(ns: u64) -> String {
    if ns < 999_500 {
        format!("{}µs", figure(fraction(ns) / 1e3))
    } else if ns < 999_500_000 {
        format!("{}ms", figure(fraction(ns) / 1e6))
    } else {
        format!("{}s", figure(fraction(ns) / 1e9))
    }
}

/// Memory in binary units: `3.1 KiB`, `12 MiB`.
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    let mut scaled = value;
    let mut unit = 0;
    while scaled.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!(
        "{} {}",
        if scaled < 0.0 {
            "0".to_owned()
        } else {
            figure(scaled)
        },
        UNITS[unit]
    )
}

/// A time span: `5m00s`, `10s`, `250ms`.
pub fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds >= 60 {
        format!("{}m{:02}s", seconds / 60, seconds % 60)
    } else if duration.subsec_millis() == 0 {
        format!("{seconds}s")
    } else if seconds == 0 {
        format!("{}ms", duration.subsec_millis())
    } else {
        format!("{:.1}s", duration.as_secs_f64())
    }
}

/// Percentage of a fraction: `7.3 %`.
pub fn percent(part: f64) -> String {
    format!("{} %", figure(part * 100.0))
}

/// Rounds a fraction that is not negative to a count; halves go up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturating by the language; figures are small and not negative"
)]
pub fn whole(value: f64) -> u64 {
    let below = value as u64;
    let goes_up = value - fraction(below) >= 0.5;
    below.saturating_add(u64::from(goes_up))
}

fn trimmed(mut text: String) -> String {
    while text.ends_with('0') {
        text.pop();
    }
    if text.ends_with('.') {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_the_digits_that_matter() {
        assert_eq!(figure(0.0), "0");
        assert_eq!(figure(0.0034), "0.003");
        assert_eq!(figure(0.814), "0.81");
        assert_eq!(figure(3.94), "3.9");
        assert_eq!(figure(41.4), "41");
        assert_eq!(figure(999.8), "1 000");
        assert_eq!(figure(15_000_000.0), "15 000 000");
    }

    #[test]
    fn every_quantity_names_its_unit() {
        assert_eq!(latency(41_000), "41µs");
        assert_eq!(latency(810_000), "810µs");
        assert_eq!(latency(1_200_000_000), "1.2s");
        assert_eq!(bytes(3_174.0), "3.1 KiB");
        assert_eq!(bytes(1.1 * 1024.0 * 1024.0 * 1024.0), "1.1 GiB");
        assert_eq!(span(Duration::from_mins(5)), "5m00s");
        assert_eq!(span(Duration::from_secs(10)), "10s");
        assert_eq!(span(Duration::from_millis(1500)), "1.5s");
        assert_eq!(rate(49_998.2), "49 998/s");
        assert_eq!(percent(0.073), "7.3 %");
    }

    #[test]
    fn a_latency_has_the_unit_that_its_neighbours_have() {
        assert_eq!(latency(97_000), "97µs");
        assert_eq!(latency(100_000), "100µs");
        assert_eq!(latency(999_499), "999µs");
        assert_eq!(latency(999_500), "1ms");
        assert_eq!(latency(999_499_999), "999ms");
        assert_eq!(latency(999_500_000), "1s");
    }

    #[test]
    fn a_count_is_the_nearest_one() {
        for (value, count) in [
            (0.0, 0),
            (0.499_999_999_999_999_94, 0),
            (0.5, 1),
            (1.5, 2),
            (2.49, 2),
            (-1.0, 0),
            (f64::NAN, 0),
            (f64::INFINITY, u64::MAX),
        ] {
            assert_eq!(whole(value), count, "{value}");
        }
    }

    #[test]
    fn a_ratio_to_nothing_is_zero() {
        assert!(ratio(3, 0).abs() < f64::EPSILON);
        assert!((ratio(1, 4) - 0.25).abs() < f64::EPSILON);
    }
}
