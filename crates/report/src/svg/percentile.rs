//! The percentile plot of HDR histograms: the tail at full length.

use super::drawing::{Drawing, clip, path, text_width};
use super::frame::{BOTTOM, LEFT, RIGHT, TOP, titled, value_axis};
use super::scale::Scale;
use crate::metric::Unit;
use crate::units;

/// Most lines.
const LINES_MAX: usize = 6;
/// Share of the messages at each mark of the axis.
const MARKS: [(f64, &str); 9] = [
    (0.0, "0 %"),
    (0.5, "50 %"),
    (0.9, "90 %"),
    (0.99, "99 %"),
    (0.999, "99.9 %"),
    (0.9999, "99.99 %"),
    (0.99999, "99.999 %"),
    (0.999_999, "99.9999 %"),
    (0.999_999_9, "99.99999 %"),
];

/// A distribution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PercentileLine {
    /// What it is called.
    pub name: String,
    /// Values measured.
    pub count: u64,
    /// (fraction of the values, nanoseconds), ascending.
    pub curve: Vec<(f64, u64)>,
}

/// Distributions beside each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PercentileChart {
    /// What it shows.
    pub title: String,
    /// What the vertical axis is.
    pub axis: String,
    /// At most six are drawn.
    pub lines: Vec<PercentileLine>,
}

impl PercentileChart {
    /// Draws it; none if no distribution has a value.
    pub fn draw(&self) -> Option<Drawing> {
        let values = || {
            self.lines
                .iter()
                .flat_map(|line| &line.curve)
                .map(|point| point.1)
        };
        let low = values().filter(|value| *value > 0).min()?;
        let high = values().max()?;
        let y = Scale::logarithmic(units::fraction(low), units::fraction(high), (BOTTOM, TOP));
        let nines = self
            .lines
            .iter()
            .map(|line| nines_of(line.count))
            .fold(2.0, f64::max);
        let x = |fraction: f64| LEFT + (nines_at(fraction) / nines).min(1.0) * (RIGHT - LEFT);
        let mut drawing = titled(&self.title, &self.axis);
        value_axis(&mut drawing, y, Unit::Nanoseconds);
        drawing.line("x", (LEFT, BOTTOM), (RIGHT, BOTTOM));
        let marks = MARKS.iter().filter(|mark| nines_at(mark.0) <= nines + 1e-9);
        axis(&mut drawing, marks.map(|&(share, text)| (x(share), text)));
        let middle = f64::midpoint(LEFT, RIGHT);
        drawing.text(
            "a c",
            (middle, BOTTOM + 300.0),
            "share of messages that took at most this long",
        );
        for (index, line) in self.lines.iter().take(LINES_MAX).enumerate() {
            let last = 1.0 - 10_f64.powf(-nines_of(line.count));
            let points: Vec<_> = line
                .curve
                .iter()
                .map(|&(fraction, ns)| (x(fraction.min(last)), y.at(units::fraction(ns))))
                .collect();
            if !points.is_empty() {
                drawing.path(&format!("l s{}", index + 1), &line.name, &path(&points));
                key(&mut drawing, index, &line.name);
            }
        }
        Some(drawing)
    }
}

/// Rules and shares along the axis; a text that would touch the one before is left out.
fn axis<'texts>(drawing: &mut Drawing, marks: impl Iterator<Item = (f64, &'texts str)>) {
    let mut free = 0.0;
    for (at, text) in marks {
        drawing.line("k", (at, TOP), (at, BOTTOM));
        let half = text_width(text, 105.0) / 2.0;
        if at - half >= free {
            drawing.text("v c", (at, BOTTOM + 160.0), text);
            free = at + half + 60.0;
        }
    }
}

/// Names in the upper left corner: lines of a percentile plot end on top of each other.
fn key(drawing: &mut Drawing, index: usize, name: &str) {
    let y = TOP + 90.0 + 150.0 * units::fraction(u64::try_from(index).unwrap_or(0));
    drawing.line(
        &format!("n s{}", index + 1),
        (LEFT + 80.0, y),
        (LEFT + 330.0, y),
    );
    drawing.text("n", (LEFT + 380.0, y + 40.0), &clip(name, 30));
}

/// Decades of the tail: 0.99 is 2.
fn nines_at(fraction: f64) -> f64 {
    -(1.0 - fraction.clamp(0.0, 0.999_999_9)).log10()
}

/// Decades that so many values can show.
fn nines_of(count: u64) -> f64 {
    units::fraction(count.max(10)).log10().min(7.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_nine_takes_the_same_room() {
        assert!((nines_at(0.9) - 1.0).abs() < 1e-9);
        assert!((nines_at(0.999) - 3.0).abs() < 1e-9);
        assert!((nines_of(1_000) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_few_values_show_no_more_nines_than_they_have() {
        let line = PercentileLine {
            name: "e2e".into(),
            count: 1_000,
            curve: vec![(0.0, 100), (0.5, 200), (1.0, 4_000)],
        };
        let chart = PercentileChart {
            lines: vec![line],
            ..PercentileChart::default()
        };
        let svg = chart.draw().unwrap().inline();
        assert!(svg.contains("99.9 %") && !svg.contains("99.99 %"), "{svg}");
        assert_eq!(PercentileChart::default().draw(), None);
    }
}
