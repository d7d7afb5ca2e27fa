//! The percentile plot of HDR histograms: the tail at full length.

use super::drawing::{Drawing, Place, path, text_width};
use super::frame::{
    BOTTOM, LABEL_SIZE, LABEL_SIZE_NARROW, LEFT, RIGHT, TICKS_Y, TITLE_Y, TOP, label_class, titled,
    value_axis,
};
use super::line::{EndLabel, Swatch, end_labels};
use super::scale::Scale;
use crate::metric::Unit;
use thrum_figures as units;

/// Most lines.
const LINES_MAX: usize = 6;
/// Values beyond a share, from which on it is drawn.
const VALUES_BEYOND_MIN: f64 = 10.0;
/// Distance of lines of text.
const LINE_STEP: f64 = 130.0;
/// Fewer values have no percentiles.
const VALUES_MIN: u64 = 100;
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
    /// Values that never arrived: each is more than any that did.
    pub missing: u64,
    /// (fraction of the values that were measured, nanoseconds), ascending.
    pub curve: Vec<(f64, u64)>,
}

impl PercentileLine {
    /// The share of all values up to which enough lie beyond.
    fn end(&self) -> f64 {
        1.0 - VALUES_BEYOND_MIN / units::fraction(self.values())
    }

    fn values(&self) -> u64 {
        self.count + self.missing
    }

    /// The share of all values that arrived.
    fn arrived(&self) -> f64 {
        units::ratio(self.count, self.values())
    }

    /// The points that enough values stand behind, as shares of all values.
    fn points(&self) -> impl Iterator<Item = (f64, u64)> {
        let (arrived, end) = (self.arrived(), self.end());
        let points = self
            .curve
            .iter()
            .map(move |&(part, ns)| (part * arrived, ns));
        // A point is the highest of its values: those of the last part end in it.
        points.take_while(move |&(part, _)| part <= end + 1e-9)
    }
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
        let lines: Vec<&PercentileLine> = self
            .lines
            .iter()
            .filter(|line| line.values() >= VALUES_MIN && line.points().next().is_some())
            .take(LINES_MAX)
            .collect();
        let values = || {
            lines
                .iter()
                .flat_map(|line| line.points())
                .map(|point| point.1)
        };
        let low = values().filter(|value| *value > 0).min()?;
        let high = values().max()?;
        let y = Scale::logarithmic(units::fraction(low), units::fraction(high), (BOTTOM, TOP));
        let ends = lines.iter().map(|line| nines_at(line.end()));
        let nines = ends.fold(1.0, f64::max);
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
            "share that took at most this long",
        );
        let mut labels = Vec::new();
        let mut missing_y = TOP + 120.0;
        for (index, line) in lines.iter().enumerate() {
            let place = |(part, ns)| (x(part), y.at(units::fraction(ns)));
            let points: Vec<(f64, f64)> = line.points().map(place).collect();
            let Some(&end) = points.last() else {
                continue;
            };
            drawing.path(&format!("l s{}", index + 1), &line.name, &path(&points));
            if line.missing > 0 {
                let from = Place::new(x(line.arrived().min(line.end())), end.1);
                draw_missing(&mut drawing, line, from, missing_y);
                missing_y += LINE_STEP;
            }
            labels.push(EndLabel {
                y: end.1,
                text: &line.name,
                style: Swatch::Line(index + 1),
            });
        }
        end_labels(&mut drawing, labels);
        Some(drawing)
    }
}

/// Where the values that never arrived begin: upwards without end.
fn draw_missing(drawing: &mut Drawing, line: &PercentileLine, from: Place, text_y: f64) {
    drawing.line("i", (from.x, from.y), (from.x, TOP));
    let text = format!(
        "{}: {} never arrived",
        line.name,
        units::count(line.missing)
    );
    drawing.text("i e", Place::new(from.x - 40.0, text_y), &text);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_nine_takes_the_same_room() {
        assert!((nines_at(0.9) - 1.0).abs() < 1e-9);
        assert!((nines_at(0.999) - 3.0).abs() < 1e-9);
    }

    /// Of 1 000 values with 2 points for each decade.
    fn line(missing: u64) -> PercentileLine {
        let curve = [
            (0.0, 100),
            (0.5, 200),
            (0.9, 300),
            (0.99, 400),
            (0.999, 4_000),
            (1.0, 9_000),
        ];
        PercentileLine {
            name: "e2e".into(),
            count: 1_000 - missing,
            missing,
            curve: curve.into(),
        }
    }

    fn drawn(line: PercentileLine) -> Option<String> {
        let chart = PercentileChart {
            lines: vec![line],
            ..PercentileChart::default()
        };
        chart.draw().map(|drawing| drawing.inline())
    }

    #[test]
    fn a_line_ends_where_fewer_than_ten_values_lie_beyond() {
        let svg = drawn(line(0)).unwrap();
        assert!(svg.contains(">99 %") && !svg.contains("99.9 %"), "{svg}");
        let last = line(0).points().last();
        assert_eq!(last.map(|point| point.1), Some(400));
        let few = PercentileLine {
            count: 99,
            ..line(0)
        };
        assert_eq!(drawn(few), None);
        assert_eq!(PercentileChart::default().draw(), None);
    }

    #[test]
    fn values_that_never_arrived_have_their_share_and_a_mark() {
        let parts: Vec<f64> = line(100).points().map(|point| point.0).collect();
        assert!((parts[2] - 0.81).abs() < 1e-9, "{parts:?}");
        assert!(parts.iter().all(|part| *part <= 0.9), "{parts:?}");
        let svg = drawn(line(100)).unwrap();
        assert!(svg.contains(">e2e: 100 never arrived<"), "{svg}");
        assert!(!drawn(line(0)).unwrap().contains("never arrived"));
    }

    #[test]
    fn names_stand_beside_the_plot_and_shares_do_not_touch_on_a_narrow_screen() {
        let line = |name: &str| PercentileLine {
            name: name.to_owned(),
            count: 100_000,
            curve: vec![(0.0, 100), (0.5, 200), (0.999, 4_000)],
            ..PercentileLine::default()
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
