//! Bars for comparisons.

use super::drawing::{Drawing, Place, Size, clip, text_width};
use super::scale::{Scale, tick_text, value_text};
use crate::metric::Unit;
use thrum_figures as units;

/// Most bars of one chart.
const BARS_MAX: usize = 16;

const WIDTH: f64 = 6_000.0;
const RIGHT: f64 = 4_800.0;
const TOP: f64 = 400.0;
const ROW: f64 = 300.0;
/// Room for names: it grows with the longest of them.
const LEFT_MIN: f64 = 900.0;
const LEFT_MAX: f64 = 2_600.0;
/// Most characters of a name, and of the text below it.
const NAME_MAX: usize = 28;
const DETAIL_MAX: usize = 36;
/// Font sizes: of names on narrow screens, where letters are larger, and of details, which are left
/// out there.
const NAME_SIZE: f64 = 150.0;
const DETAIL_SIZE: f64 = 105.0;

/// A bar.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bar {
    /// Its owner.
    pub name: String,
    /// The text below the name, such as a version; may be empty.
    pub detail: String,
    /// Its length.
    pub value: f64,
    /// Lowest and highest of several runs: drawn as a whisker.
    pub range: Option<(f64, f64)>,
    /// Drawn hollow: the figure is shown and does not count.
    pub is_void: bool,
    /// Number of its colour, from 1 to 6; 0 is the first.
    pub colour: usize,
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
        let x = Scale::linear(high, self.unit, (left(bars), RIGHT));
        let mut drawing = Drawing::new(WIDTH, bottom + 220.0, &self.title);
        drawing.text("t", Place::new(0.0, 150.0), &self.title);
        drawing.text("a", Place::new(0.0, 310.0), &self.axis);
        for tick in x.ticks(self.unit) {
            drawing.line("k", (x.at(tick), TOP), (x.at(tick), bottom));
            drawing.text(
                "v c",
                Place::new(x.at(tick), bottom + 150.0),
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
        let left = x.place.0;
        let below = if bar.detail.is_empty() { 40.0 } else { -10.0 };
        drawing.text(
            "e",
            Place::new(left - 60.0, middle + below),
            &clip(&bar.name, NAME_MAX),
        );
        if !bar.detail.is_empty() {
            let at = Place::new(left - 60.0, middle + 110.0);
            drawing.text("v e far", at, &clip(&bar.detail, DETAIL_MAX));
        }
        if !bar.value.is_finite() {
            return;
        }
        let mut end = x.at(bar.value);
        let class = match (bar.is_void, bar.colour) {
            (true, _) => "bar void".to_owned(),
            (false, 0 | 1) => "bar".to_owned(),
            (false, colour) => format!("bar c{colour}"),
        };
        drawing.rectangle(&class, Place::new(left, top), Size::new(end - left, 180.0));
        if let Some((low, high)) = bar.range.filter(|(low, high)| low < high) {
            let (low, high) = (x.at(low), x.at(high));
            drawing.line("w", (low, middle), (high, middle));
            for at in [low, high] {
                drawing.line("w", (at, middle - 55.0), (at, middle + 55.0));
            }
            end = end.max(high);
        }
        let mut text = value_text(bar.value, self.unit);
        if bar.is_void {
            text.push_str(" INVALID");
        }
        drawing.text("n", Place::new(end + 60.0, middle + 40.0), &text);
    }
}

/// The left end of the bars: no name is cut unless it is very long.
fn left(bars: &[Bar]) -> f64 {
    let widths = bars.iter().flat_map(|bar| {
        [
            text_width(&clip(&bar.name, NAME_MAX), NAME_SIZE),
            text_width(&clip(&bar.detail, DETAIL_MAX), DETAIL_SIZE),
        ]
    });
    (widths.fold(0.0, f64::max) + 120.0).clamp(LEFT_MIN, LEFT_MAX)
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
            ..Bar::default()
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

    #[test]
    fn a_name_is_whole_and_its_version_below_it() {
        let bar = Bar {
            name: "mosquitto-2-threads".to_owned(),
            detail: "version 2.0.11".to_owned(),
            value: 5.0,
            ..Bar::default()
        };
        let chart = BarChart {
            title: "t".into(),
            axis: String::new(),
            unit: Unit::Count,
            bars: vec![bar],
        };
        let svg = chart.draw().unwrap().inline();
        assert!(
            svg.contains(">mosquitto-2-threads<") && svg.contains(">version 2.0.11<"),
            "{svg}"
        );
        assert!(left(&chart.bars) > text_width("mosquitto-2-threads", NAME_SIZE));
    }
}
