//! The percentile plot of HDR histograms: the tail at full length.

use super::drawing::{Drawing, Place, path, text_width};
use super::frame::{
    BOTTOM, LABEL_SIZE, LABEL_SIZE_NARROW, LEFT, RIGHT, TICKS_Y, TITLE_Y, TOP, label_class, titled,
    value_axis,
};
use super::line::{EndLabel, end_labels};
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
    /// Its label.
    pub name: String,
    /// Values measured.
    pub count: u64,
    /// (fraction of the values, nanoseconds), ascending.
    pub curve: Vec<(f64, u64)>,
}

/// Distributions beside each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PercentileChart {
    /// Its description.
    pub title: String,
    /// The title of the vertical axis.
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
            Place::new(middle, TITLE_Y),
            "share of messages that took at most this long",
        );
        let mut labels = Vec::new();
        for (index, line) in self.lines.iter().take(LINES_MAX).enumerate() {
            let last = 1.0 - 10_f64.powf(-nines_of(line.count));
            let points: Vec<_> = line
                .curve
                .iter()
                .map(|&(fraction, ns)| (x(fraction.min(last)), y.at(units::fraction(ns))))
                .collect();
            if let Some(&(_, y)) = points.last() {
                drawing.path(&format!("l s{}", index + 1), &line.name, &path(&points));
                labels.push(EndLabel {
                    y,
                    text: &line.name,
                    style: Some(index + 1),
                });
            }
        }
        end_labels(&mut drawing, labels);
        Some(drawing)
    }
}

/// Rules and shares along the axis; a text that would touch the one before is left out.
fn axis<'texts>(drawing: &mut Drawing, marks: impl Iterator<Item = (f64, &'texts str)>) {
    let (mut free, mut free_narrow) = (0.0, 0.0);
    let fits = |free: &mut f64, at: f64, text: &str, size: f64| {
        let half = text_width(text, size) / 2.0;
        let fits = at - half >= *free;
        if fits {
            *free = at + half + 60.0;
        }
        fits
    };
    for (at, text) in marks {
        drawing.line("k", (at, TOP), (at, BOTTOM));
        let is_wide = fits(&mut free, at, text, LABEL_SIZE);
        let is_narrow = fits(&mut free_narrow, at, text, LABEL_SIZE_NARROW);
        if let Some(class) = label_class("v c", is_wide, is_narrow) {
            drawing.text(&class, Place::new(at, TICKS_Y), text);
        }
    }
}

/// Decades of the tail: 0.99 is 2.
fn nines_at(fraction: f64) -> f64 {
    -(1.0 - fraction.clamp(0.0, 0.999_999_9)).log10()
}

/// Decades that this many values can show.
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

    #[test]
    fn names_stand_beside_the_plot_and_shares_do_not_touch_on_a_narrow_screen() {
        let line = |name: &str| PercentileLine {
            name: name.to_owned(),
            count: 10_000,
            curve: vec![(0.0, 100), (0.5, 200), (1.0, 4_000)],
        };
        let chart = PercentileChart {
            lines: vec![line("e2e"), line("service")],
            ..PercentileChart::default()
        };
        let svg = chart.draw().unwrap().inline();
        for name in ["e2e", "service"] {
            let (before, _) = svg.split_once(&format!(">{name}</text>")).unwrap();
            let (_, x) = before.rsplit_once("x=\"").unwrap();
            let x: f64 = x.split_once('"').unwrap().0.parse().unwrap();
            assert!(x > RIGHT, "{name} at {x}");
        }
        let share = |text: &str| {
            let (before, _) = svg.split_once(&format!(">{text}<"))?;
            Some(before.rsplit_once("class=\"")?.1.split_once('"')?.0)
        };
        assert_eq!(share("0 %"), Some("v c"));
        assert_eq!(share("50 %"), Some("v c far"));
        assert_eq!(share("90 %"), Some("v c"));
    }
}
