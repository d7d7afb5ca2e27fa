//! Parsers of the values of flags.

use std::time::Duration;

use thrum_bench::BrokerProcess;
use thrum_codec::{QoS, Version};
use thrum_load::scenario::{Arrivals, Rate};
use thrum_settings::parse_span;

pub(super) fn span(text: &str) -> Result<Duration, String> {
    parse_span(text).ok_or_else(|| "write a span like 30s, 5m or 1h".to_owned())
}

pub(super) fn rate(text: &str) -> Result<Rate, String> {
    Rate::parse(text)
        .ok_or_else(|| "write messages per second like 50, 50/s, 0.5 or 6/m".to_owned())
}

pub(super) fn arrivals(text: &str) -> Result<Arrivals, String> {
    Arrivals::parse(text).ok_or_else(|| "write even, poisson or burst".to_owned())
}

pub(super) fn qos(text: &str) -> Result<QoS, String> {
    match text {
        "0" => Ok(QoS::AtMostOnce),
        "1" => Ok(QoS::AtLeastOnce),
        "2" => Ok(QoS::ExactlyOnce),
        _ => Err("write 0, 1 or 2".to_owned()),
    }
}

pub(super) fn version(text: &str) -> Result<Version, String> {
    match text {
        "3.1" => Ok(Version::V31),
        "3.1.1" | "4" => Ok(Version::V311),
        "5" | "5.0" => Ok(Version::V5),
        _ => Err("write 3.1.1 or 5".to_owned()),
    }
}

pub(super) fn broker_process(text: &str) -> Result<BrokerProcess, String> {
    match text {
        "none" => Ok(BrokerProcess::Unknown),
        "auto" => Ok(BrokerProcess::Detect),
        _ => text
            .parse()
            .map(BrokerProcess::Pid)
            .map_err(|_| "write the number of a process, `auto` or `none`".to_owned()),
    }
}

/// `KEY=VALUE`.
pub(super) fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("write KEY=VALUE, such as groups.publishers.clients=500")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// A part of 1: `75%` or `0.75`.
pub(super) fn part(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().map(|percent: f64| percent / 100.0),
        None => text.parse(),
    };
    let part = number.ok().filter(|part| (0.0..=1.0).contains(part));
    part.ok_or_else(|| "write a part like 75% or 0.75".to_owned())
}

/// A load: messages per second or clients.
pub(super) fn load(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    let (digits, factor) = match number.strip_suffix(['k', 'K']) {
        Some(thousands) => (thousands, 1_000.0),
        None => (number, 1.0),
    };
    let load = digits.parse::<f64>().ok().map(|digits| digits * factor);
    load.filter(|load| load.is_finite() && *load > 0.0)
        .ok_or_else(|| "write a number like 5000, 5K or 5000/s".to_owned())
}

/// A factor above 0.
pub(super) fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok();
    factor
        .filter(|factor: &f64| factor.is_finite() && *factor > 0.0)
        .ok_or_else(|| "write a number above 0, such as 0.1".to_owned())
}

/// A window of a run: `10s..30s`.
pub(super) fn window(text: &str) -> Result<(Duration, Duration), String> {
    let ends = text.split_once("..");
    let spans = ends.and_then(|(from, to)| Some((parse_span(from)?, parse_span(to)?)));
    spans
        .filter(|(from, to)| from < to)
        .ok_or_else(|| "write two spans like 10s..30s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_numbers_with_and_without_units() {
        for (text, expected) in [("5000", 5e3), ("5K", 5e3), ("0.5", 0.5), ("200/s", 200.0)] {
            assert_eq!(load(text), Ok(expected), "{text}");
        }
        for text in ["", "0", "-1", "fast", "inf"] {
            assert!(load(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parts_are_percentages_or_fractions() {
        assert_eq!(part("75%"), Ok(0.75));
        assert_eq!(part("0.01"), Ok(0.01));
        assert!(part("200%").is_err() && part("some").is_err());
    }

    #[test]
    fn a_span_is_never_without_end() {
        assert_eq!(span("1h30m"), Ok(Duration::from_mins(90)));
        assert!(span("never").is_err() && span("1w").is_err());
    }

    #[test]
    fn settings_and_windows_have_two_sides() {
        let both = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(setting("a.b = 5"), both("a.b", "5"));
        assert_eq!(setting("a=b=c"), both("a", "b=c"));
        assert!(setting("a").is_err());
        let seconds = Duration::from_secs;
        assert_eq!(window("10s..1m"), Ok((seconds(10), seconds(60))));
        assert!(window("30s..10s").is_err() && window("10s").is_err());
    }
}
