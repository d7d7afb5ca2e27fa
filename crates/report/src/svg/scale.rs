//! From a quantity to a place, and the marks along an axis.

use crate::metric::Unit;
use thrum_figures as units;

/// Most tick marks along an axis.
const TICKS_MAX: usize = 12;

/// Steps of a time axis in seconds.
const TIME_STEPS: [f64; 20] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0,
    10_800.0, 14_400.0, 21_600.0, 43_200.0, 86_400.0, 172_800.0,
];

/// Maps a range of values to a range of places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Lowest and highest value.
    pub range: (f64, f64),
    /// Their positions.
    pub place: (f64, f64),
    /// Logarithmic; the range is positive then.
    pub log: bool,
}

impl Scale {
    /// A linear scale from 0 to a round number not below `max`.
    pub fn linear(max: f64, unit: Unit, place: (f64, f64)) -> Self {
        let max = if max > 0.0 { max } else { 1.0 };
        let step = round_step(max / 5.0, unit);
        Self {
            range: (0.0, (max / step - 1e-9).ceil() * step),
            place,
            log: false,
        }
    }

    /// A logarithmic scale that holds `min` and `max`, and at least a decade.
    pub fn logarithmic(min: f64, max: f64, place: (f64, f64)) -> Self {
        let min = if min > 0.0 { min } else { 1.0 };
        let low = 10_f64.powf((min.log10() * 2.0 + 0.05).floor() / 2.0);
        let high = 10_f64.powf((max.max(min).log10() * 2.0 - 0.05).ceil() / 2.0);
        Self {
            range: (low, high.max(low * 10.0)),
            place,
            log: true,
        }
    }

    /// The position of a value; values outside of the range move to its ends.
    pub fn at(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        let value = value.clamp(low, high);
        let part = if self.log {
            (value / low).ln() / (high / low).ln()
        } else {
            (value - low) / (high - low)
        };
        self.place.0 + part * (self.place.1 - self.place.0)
    }

    /// Values to mark, ascending.
    pub fn ticks(&self, unit: Unit) -> Vec<f64> {
        let (low, high) = self.range;
        let ticks: Vec<f64> = if self.log {
            log_ticks(low, high)
        } else {
            let step = round_step(high / 5.0, unit);
            multiples(step)
                .take_while(|tick| *tick <= high * 1.001)
                .collect()
        };
        ticks.into_iter().take(TICKS_MAX).collect()
    }
}

/// Times to mark from 0 to `end`, with a step that gives about seven of them.
pub(super) fn time_ticks(end: f64) -> Vec<f64> {
    let step = TIME_STEPS
        .into_iter()
        .find(|step| end / step <= 8.0)
        .unwrap_or_else(|| round_step(end / 8.0, Unit::Seconds));
    multiples(step)
        .take(TICKS_MAX)
        .take_while(|tick| *tick <= end)
        .collect()
}

/// A time on the axis: `1:05` minutes and seconds, or `2:30` hours and minutes if the axis is that
/// long.
pub(super) fn time_text(seconds: f64, end: f64) -> String {
    let whole = units::whole(seconds.max(0.0));
    let small = if end >= LONG_SECONDS {
        whole / 60
    } else {
        whole
    };
    format!("{}:{:02}", small / 60, small % 60)
}

/// The title of the time axis.
pub(super) fn time_title(end: f64) -> &'static str {
    if end >= LONG_SECONDS {
        "time since the first connection, h:mm"
    } else {
        "time since the first connection, m:ss"
    }
}

/// From here on, axes count hours.
const LONG_SECONDS: f64 = 7_200.0;

/// A figure with its unit.
pub fn value_text(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => units::latency(units::whole(value.max(0.0))),
        Unit::Seconds => format!("{}s", units::figure(value)),
        Unit::PerSecond => units::rate(value),
        Unit::Count => units::figure(value),
        Unit::Share => percent(value),
        Unit::Bytes => units::bytes(value),
        Unit::Cores => format!("{} cores", units::figure(value)),
        Unit::Microseconds => format!("{}µs", units::figure(value)),
    }
}

/// A share with enough digits to distinguish 99.99 % from 100 %.
fn percent(share: f64) -> String {
    let rounded = units::percent(share);
    let missing = 1.0 - share;
    if share > 0.9 && missing > 0.0 {
        let text = format!("{:.4}", share * 100.0);
        let text = if text == "100.0000" { "99.9999" } else { &text };
        format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
    } else {
        rounded
    }
}

/// A value on an axis whose title already names the quantity.
pub(super) fn tick_text(value: f64, unit: Unit) -> String {
    match unit {
        // The parts of a small axis have more digits than figures have.
        Unit::Cores | Unit::Count if value < 0.1 => {
            let digits = format!("{value:.6}");
            let digits = digits.trim_end_matches('0').trim_end_matches('.');
            digits.to_owned()
        }
        Unit::PerSecond | Unit::Cores | Unit::Count => units::figure(value),
        _ if value == 0.0 => "0".to_owned(),
        _ => value_text(value, unit),
    }
}

fn multiples(step: f64) -> impl Iterator<Item = f64> {
    (0_u32..).map(move |index| f64::from(index) * step)
}

/// The smallest of 1, 2, 5 times a power of the unit's base that is not below `wanted`.
fn round_step(wanted: f64, unit: Unit) -> f64 {
    if unit == Unit::Bytes && wanted > 0.0 {
        return 2_f64.powf(wanted.log2().ceil()).max(1.0);
    }
    let power = 10_f64.powf(wanted.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|step| *step >= wanted * 0.999)
        .unwrap_or(power * 10.0)
}

fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let digits: &[f64] = if high / low > 2_000.0 {
        &[1.0]
    } else if high / low > 50.0 {
        &[1.0, 3.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let mut ticks = Vec::new();
    let mut power = 10_f64.powf(low.log10().floor());
    while power <= high && ticks.len() < TICKS_MAX {
        let inside = digits.iter().map(|digit| digit * power);
        ticks.extend(inside.filter(|tick| (low * 0.999..=high * 1.001).contains(tick)));
        power *= 10.0;
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_number() {
        let scale = Scale::linear(49_998.0, Unit::PerSecond, (0.0, 100.0));
        assert_eq!(scale.range, (0.0, 50_000.0));
        assert_eq!(scale.ticks(Unit::PerSecond).len(), 6);
        let memory = Scale::linear(1.1e9, Unit::Bytes, (0.0, 100.0));
        let texts: Vec<_> = memory
            .ticks(Unit::Bytes)
            .iter()
            .map(|tick| tick_text(*tick, Unit::Bytes))
            .collect();
        assert_eq!(
            texts,
            ["0", "256 MiB", "512 MiB", "768 MiB", "1 GiB", "1.2 GiB"]
        );
    }

    #[test]
    fn a_log_axis_marks_decades() {
        let scale = Scale::logarithmic(80_000.0, 4.1e7, (200.0, 0.0));
        let texts: Vec<_> = scale
            .ticks(Unit::Nanoseconds)
            .iter()
            .map(|tick| tick_text(*tick, Unit::Nanoseconds))
            .collect();
        assert_eq!(texts, ["100µs", "1ms", "10ms", "100ms"]);
        assert!(scale.at(1e6) < scale.at(1e5));
    }

    #[test]
    fn marks_of_a_small_axis_differ() {
        let scale = Scale::linear(0.0034, Unit::Cores, (0.0, 100.0));
        let ticks = scale.ticks(Unit::Cores);
        let texts: Vec<_> = ticks
            .iter()
            .map(|tick| tick_text(*tick, Unit::Cores))
            .collect();
        assert_eq!(texts, ["0", "0.001", "0.002", "0.003", "0.004"]);
    }

    #[test]
    fn values_beyond_the_axis_are_drawn_at_its_end() {
        let scale = Scale::linear(10.0, Unit::Count, (0.0, 100.0));
        assert!((scale.at(1e9) - 100.0).abs() < 1e-9);
        assert!((scale.at(-1.0)).abs() < 1e-9);
    }

    #[test]
    fn times_are_minutes_or_hours() {
        assert_eq!(time_ticks(60.0).len(), 7);
        assert_eq!(time_text(65.0, 300.0), "1:05");
        assert_eq!(time_text(9_000.0, 86_400.0), "2:30");
    }

    #[test]
    fn nearly_all_is_not_all() {
        assert_eq!(value_text(1.0, Unit::Share), "100 %");
        assert_eq!(value_text(0.9999, Unit::Share), "99.99 %");
        assert_eq!(value_text(0.999_999_99, Unit::Share), "99.9999 %");
        assert_eq!(value_text(0.5, Unit::Share), "50 %");
    }
}
