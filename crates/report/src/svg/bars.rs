//! Bars for comparisons.

use super::drawing::{Drawing, clip};
use super::scale::{Scale, tick_text, value_text};
use crate::metric::Unit;
use crate::units;

/// Most bars of one chart.
const BARS_MAX: usize = 16;

const WIDTH: f64 = 6_000.0;
const LEFT: f64 = 1_500.0;
const RIGHT: f64 = 4_800.0;
const TOP: f64 = 400.0;
const ROW: f64 = 270.0;

/// A bar.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bar {
    /// Whose it is.
    pub name: String,
    /// Its length.
    pub value: f64,
    /// Lowest and highest of several runs: drawn as a whisker.
    pub range: Option<(f64, f64)>,
}

/// Bars of one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct BarChart {
    /// The figure.
    pub title: String,
    /// Which end is better and what the whisker is.
    pub axis: String,
    /// Unit of the values.
    pub unit: Unit,
    /// At most 16 are drawn.
    pub bars: Vec<Bar>,
}

impl BarChart {
    /// Draws it; none if there are no bars.
    pub fn draw(&self) -> Option<Drawing> {
        let bars = &self.bars[..self.bars.len().min(BARS_MAX)];
        let ends = bars
            .iter()
            .map(|bar| bar.range.map_or(bar.value, |range| range.1.max(bar.value)));
        let high = ends.filter(|end| end.is_finite()).max_by(f64::total_cmp)?;
        let rows = units::fraction(u64::try_from(bars.len()).unwrap_or(0));
        let bottom = TOP + rows * ROW + 30.0;
        let x = Scale::linear(high, self.unit, (LEFT, RIGHT));
        let mut drawing = Drawing::new(WIDTH, bottom + 220.0, &self.title);
        drawing.text("t", (0.0, 150.0), &self.title);
        drawing.text("a", (0.0, 310.0), &self.axis);
        for tick in x.ticks(self.unit) {
            drawing.line("k", (x.at(tick), TOP), (x.at(tick), bottom));
            drawing.text(
                "v c",
                (x.at(tick), bottom + 150.0),
                &tick_text(tick, self.unit),
            );
        }
        for (index, bar) in bars.iter().enumerate() {
            let top = TOP + units::fraction(u64::try_from(index).unwrap_or(0)) * ROW + 50.0;
            self.row(&mut drawing, bar, top, x);
        }
        Some(drawing)
    }

    fn row(&self, drawing: &mut Drawing, bar: &Bar, top: f64, x: Scale) {
        let middle = top + 90.0;
        drawing.text("e", (LEFT - 60.0, middle + 40.0), &clip(&bar.name, 22));
        if !bar.value.is_finite() {
            return;
        }
        let mut end = x.at(bar.value);
        drawing.rectangle("bar", (LEFT, top), (end - LEFT, 180.0));
        if let Some((low, high)) = bar.range.filter(|(low, high)| low < high) {
            let (low, high) = (x.at(low), x.at(high));
            drawing.line("w", (low, middle), (high, middle));
            for at in [low, high] {
                drawing.line("w", (at, middle - 55.0), (at, middle + 55.0));
            }
            end = end.max(high);
        }
        drawing.text(
            "n",
            (end + 60.0, middle + 40.0),
            &value_text(bar.value, self.unit),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_runs_have_a_whisker_and_one_has_none() {
        let bar = |range| Bar {
            name: "a".into(),
            value: 5.0,
            range,
        };
        let chart = |bars| BarChart {
            title: "t".into(),
            axis: String::new(),
            unit: Unit::Count,
            bars,
        };
        let draw = |bars| chart(bars).draw().map(|drawing| drawing.inline());
        assert_eq!(
            draw(vec![bar(Some((4.0, 6.0)))])
                .unwrap()
                .matches("class=\"w\"")
                .count(),
            3
        );
        assert_eq!(
            draw(vec![bar(None)])
                .unwrap()
                .matches("class=\"w\"")
                .count(),
            0
        );
        assert_eq!(draw(Vec::new()), None);
    }
}
