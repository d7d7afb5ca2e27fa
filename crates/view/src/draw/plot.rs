//! Charts made of dots, and bars in one line.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use thrum_figures::{fraction, whole};

use super::canvas::{Canvas, Dot, place};
use super::phrase::Tone;

/// A logarithmic axis begins and ends at such parts of a power of ten, so that it rarely moves.
const LOG_STEPS: f64 = 4.0;

/// Characters of bars, from almost nothing to the most.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A pause in the figures that is longer than this many seconds, or points, breaks the line.
const GAP_MAX: f64 = 2.5;

/// Bars of values from 0 to the greatest; every value above 0 is visible.
pub(crate) fn bars(values: &[f64]) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    values
        .iter()
        .map(|value| {
            if most <= 0.0 || *value <= 0.0 {
                return ' ';
            }
            let eighth = whole((value / most * 8.0).ceil()).clamp(1, 8) - 1;
            BARS[usize::try_from(eighth).unwrap_or(0)]
        })
        .collect()
}

/// A line over values from 0 to the greatest, two of them in a character.
pub(super) fn spark(values: &[f64]) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    let cells = u16::try_from(values.len().div_ceil(2)).unwrap_or(u16::MAX);
    if most <= 0.0 || values.len() < 2 {
        return String::new();
    }
    let mut canvas = Canvas::new(Rect::new(0, 0, cells, 1));
    let last = fraction(values.len() as u64 - 1);
    let dots = (0_u64..).zip(values);
    let dots = dots.map(|(number, value)| canvas.dot(fraction(number) / last, value / most));
    let dots: Vec<Dot> = dots.collect();
    for pair in dots.windows(2) {
        canvas.line(pair[0], pair[1], Style::new());
    }
    canvas.text()
}

/// Shortest axis in seconds: the first seconds of a run are not drawn as wide as a chart.
const SECONDS_MIN: f64 = 10.0;

/// A chart over time.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    /// Later ones are drawn over earlier ones.
    pub(super) curves: Vec<Curve>,
    /// Seconds at which something happened.
    pub(super) marks: Vec<f64>,
    pub(super) scale: Scale,
    /// The displayed time span; none for everything.
    pub(super) seconds: Option<f64>,
    /// A value with its unit.
    pub(super) label: fn(f64) -> String,
}

/// A line of a chart, labelled at its end.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) label: &'static str,
    /// Seconds and values; none where nothing was measured.
    pub(super) points: Vec<(f64, Option<f64>)>,
    pub(super) style: Style,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// From 0 to a round number.
    Linear,
    /// Powers of ten are equally far apart.
    Logarithmic,
}

/// The least and the greatest value on an axis, in the scale's own measure.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    fn part(self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }
}

impl Scale {
    /// The symbol of a value.
    fn measure(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Logarithmic => value.max(1.0).log10(),
        }
    }

    /// A round range around values that are not negative.
    fn range(self, values: impl Iterator<Item = f64>) -> Option<Range> {
        let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        if least > most {
            return None;
        }
        Some(match self {
            Self::Linear => Range {
                low: 0.0,
                high: round_above(most),
            },
            Self::Logarithmic => {
                let low = (self.measure(least) * LOG_STEPS).floor() / LOG_STEPS;
                let high = (self.measure(most) * LOG_STEPS).ceil() / LOG_STEPS;
                Range {
                    low,
                    // A whole power of ten, to be written at the axis, is inside.
                    high: high.max(low + 1.0),
                }
            }
        })
    }

    /// Values to be written at the axis, the most important first.
    fn ticks(self, range: Range) -> Vec<f64> {
        match self {
            Self::Linear => vec![range.high, 0.0, range.high / 2.0],
            Self::Logarithmic => {
                let powers = whole(range.low.ceil())..=whole(range.high.floor());
                powers
                    .rev()
                    .map(|power| 10_f64.powf(fraction(power)))
                    .collect()
            }
        }
    }
}

/// The least round number that is not below a value.
fn round_above(value: f64) -> f64 {
    if value <= 1.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= value * 0.999)
        .unwrap_or(value)
}

impl Curve {
    /// Seconds from one point to the next, at least one.
    fn step(&self) -> f64 {
        let pair = self.points.windows(2).next_back();
        pair.map_or(1.0, |pair| pair[1].0 - pair[0].0).max(1.0)
    }
}

impl Plot {
    /// Draws axis, lines, marks and labels.
    pub(super) fn draw(&self, buffer: &mut Buffer, area: Rect) {
        let Some((times, values)) = self.ranges() else {
            return;
        };
        let ticks: Vec<_> = self
            .scale
            .ticks(values)
            .into_iter()
            .map(|tick| (tick, (self.label)(tick)))
            .collect();
        let names_width = ticks.iter().map(|(_, name)| cells(name)).max().unwrap_or(0);
        let labels_width = self
            .curves
            .iter()
            .map(|curve| cells(curve.label))
            .max()
            .unwrap_or(0);
        let taken = names_width + 2 + labels_width + 1;
        if area.width < taken + 4 || area.height < 2 {
            return;
        }
        let inside = Rect {
            x: area.x + names_width + 2,
            width: area.width - taken,
            ..area
        };
        self.draw_axis(buffer, area, &ticks, values);
        let canvas = self.canvas(inside, times, values);
        self.draw_marks(buffer, inside, times);
        canvas.draw(buffer, inside);
        self.draw_labels(buffer, inside, values);
    }

    fn ranges(&self) -> Option<(Range, Range)> {
        let last = self.curves.iter().filter_map(|curve| curve.points.last());
        let last = last.map(|(at, _)| *at).fold(0.0, f64::max);
        let times = match self.seconds {
            // The axis of a run that is shorter than the chart ends with it.
            Some(shown) => Range {
                low: (last - shown).max(0.0),
                high: last.max(SECONDS_MIN),
            },
            None => Range {
                low: 0.0,
                high: last.max(SECONDS_MIN),
            },
        };
        let all = self.curves.iter().flat_map(|curve| &curve.points);
        let shown = all.filter(|(at, _)| *at >= times.low);
        let values = self.scale.range(shown.filter_map(|(_, value)| *value))?;
        Some((times, values))
    }

    fn draw_axis(&self, buffer: &mut Buffer, area: Rect, ticks: &[(f64, String)], values: Range) {
        let names_width = ticks.iter().map(|(_, name)| cells(name)).max().unwrap_or(0);
        let axis = area.x + names_width + 1;
        for y in area.top()..area.bottom() {
            buffer.set_string(axis, y, "│", Tone::Quiet.style());
        }
        let mut written: Vec<u16> = Vec::new();
        for (tick, name) in ticks {
            let y = row(self.part(*tick, values), area);
            if written.contains(&y) {
                continue;
            }
            written.push(y);
            let x = area.x + names_width - cells(name);
            buffer.set_string(x, y, name, Tone::Quiet.style());
            buffer.set_string(axis, y, "┤", Tone::Quiet.style());
        }
    }

    fn canvas(&self, inside: Rect, times: Range, values: Range) -> Canvas {
        let mut canvas = Canvas::new(inside);
        for curve in &self.curves {
            self.trace(curve, times, values, &mut canvas);
        }
        canvas
    }

    fn trace(&self, curve: &Curve, times: Range, values: Range, canvas: &mut Canvas) {
        let shown = curve.points.iter().filter(|(at, _)| *at >= times.low);
        let step = curve.step();
        let mut previous: Option<(f64, Dot)> = None;
        for &(at, value) in shown {
            let dot = value.map(|value| canvas.dot(times.part(at), self.part(value, values)));
            if let Some(dot) = dot {
                let near = previous.filter(|(before, _)| at - before <= GAP_MAX * step);
                let from = near.map_or(dot, |(_, from)| from);
                canvas.line(from, dot, curve.style);
            }
            previous = dot.map(|dot| (at, dot));
        }
    }

    /// The position of a value between the least and the greatest one.
    fn part(&self, value: f64, values: Range) -> f64 {
        values.part(self.scale.measure(value))
    }

    fn draw_marks(&self, buffer: &mut Buffer, inside: Rect, times: Range) {
        for at in self
            .marks
            .iter()
            .filter(|at| **at >= times.low && **at <= times.high)
        {
            let column = place(times.part(*at), usize::from(inside.width));
            let x = inside.x + u16::try_from(column).unwrap_or(0);
            for y in inside.top()..inside.bottom() {
                buffer.set_string(x, y, "┊", Tone::Quiet.style());
            }
        }
    }

    /// Names the lines at their ends; overlapping names move apart.
    fn draw_labels(&self, buffer: &mut Buffer, inside: Rect, values: Range) {
        let mut taken: Vec<u16> = Vec::new();
        for curve in &self.curves {
            let Some(value) = curve.points.last().and_then(|(_, value)| *value) else {
                continue;
            };
            let wanted = row(self.part(value, values), inside);
            let free = (inside.top()..inside.bottom()).filter(|y| !taken.contains(y));
            // Downwards first: the first curve is the uppermost one.
            let nearest = free.min_by_key(|y| (y.abs_diff(wanted), *y < wanted));
            if let Some(y) = nearest {
                taken.push(y);
                buffer.set_string(inside.right() + 1, y, curve.label, curve.style);
            }
        }
    }
}

/// Row of a part of the height, counted from below.
fn row(part: f64, area: Rect) -> u16 {
    let below_top = place(1.0 - part, usize::from(area.height));
    area.y + u16::try_from(below_top).unwrap_or(0)
}

fn cells(text: &str) -> u16 {
    u16::try_from(Span::raw(text).width()).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plotted(points: &[(f64, Option<f64>)], scale: Scale) -> Vec<String> {
        let plot = Plot {
            curves: vec![Curve {
                label: "it",
                points: points.to_vec(),
                style: Style::new(),
            }],
            marks: Vec::new(),
            scale,
            seconds: Some(10.0),
            label: |value| format!("{value}"),
        };
        let area = Rect::new(0, 0, 16, 3);
        let mut buffer = Buffer::empty(area);
        plot.draw(&mut buffer, area);
        let line = |y| -> String { (0..area.width).map(|x| buffer[(x, y)].symbol()).collect() };
        (0..area.height)
            .map(|y| line(y).trim_end().to_owned())
            .collect()
    }

    #[test]
    fn bars_reach_from_a_little_to_the_most() {
        assert_eq!(bars(&[0.0, 0.001, 4.0, 8.0]), " ▁▄█");
        assert_eq!(bars(&[0.0, 0.0]), "  ");
        assert_eq!(bars(&[]), "");
    }

    #[test]
    fn a_line_in_one_row_shows_ups_and_downs() {
        assert_eq!(spark(&[5.0; 8]), "⠉⠉⠉⠉");
        assert_eq!(spark(&[4.0, 4.0, 4.0, 0.0, 0.0, 0.0]), "⠉⢹⣀");
        assert_eq!(spark(&[0.0, 0.0]), "");
        assert_eq!(spark(&[1.0]), "");
    }

    #[test]
    fn an_axis_ends_in_a_round_number() {
        for (value, end) in [
            (0.0, 1.0),
            (0.3, 1.0),
            (3.7, 4.0),
            (51_000.0, 60_000.0),
            (10.0, 10.0),
            (49_998.0, 50_000.0),
        ] {
            assert!((round_above(value) - end).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn a_line_rises_from_left_to_right() {
        let rising: Vec<_> = (0..=10)
            .map(|second| (f64::from(second), Some(f64::from(second))))
            .collect();
        let lines = plotted(&rising, Scale::Linear);
        assert_eq!(
            lines,
            ["10 ┤      ⣀⡴⠚ it", " 5 ┤   ⢀⣠⠏⠁", " 0 ┤⣀⡴⠚⠉"].map(str::to_owned)
        );
    }

    #[test]
    fn powers_of_ten_are_equally_far_apart() {
        let points = [(0.0, Some(10.0)), (10.0, Some(1_000.0))];
        let lines = plotted(&points, Scale::Logarithmic);
        let names: Vec<_> = lines
            .iter()
            .map(|line| line.split(' ').find(|it| !it.is_empty()))
            .collect();
        assert_eq!(names, [Some("1000"), Some("100"), Some("10")]);
    }

    #[test]
    fn nothing_measured_leaves_nothing_drawn() {
        assert_eq!(plotted(&[], Scale::Linear), ["", "", ""].map(str::to_owned));
        assert_eq!(
            plotted(&[(1.0, None)], Scale::Logarithmic),
            ["", "", ""].map(str::to_owned)
        );
    }

    #[test]
    fn a_pause_breaks_the_line() {
        let flat =
            |seconds: &[f64]| -> Vec<_> { seconds.iter().map(|at| (*at, Some(5.0))).collect() };
        let dots = |points: &[(f64, Option<f64>)]| -> usize {
            let lines = plotted(points, Scale::Linear);
            lines
                .concat()
                .chars()
                .filter(|letter| ('\u{2801}'..='\u{28ff}').contains(letter))
                .count()
        };
        assert!(dots(&flat(&[0.0, 1.0, 8.0, 9.0])) < dots(&flat(&[0.0, 3.0, 6.0, 9.0])));
    }
}
