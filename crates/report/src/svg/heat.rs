//! The distribution of a run's latencies, over time.

use super::drawing::{Drawing, path};
use super::frame::{BOTTOM, TOP, TimeFrame, close};
use super::line::{EndLabel, StageBand, Swatch, TimeMark, end_labels};
use super::scale::Scale;
use crate::metric::Unit;
use crate::result::Quantiles;

/// Most columns: about five pixels each at full width.
const COLUMNS_MAX: usize = 144;

/// The upper bounds of the shades, from dark to light.
const EDGES: [&str; 5] = ["p50", "p90", "p99", "p99.9", "max"];

/// The latencies of a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeatColumn {
    /// Seconds from the first connection.
    pub at: f64,
    /// Its length in seconds.
    pub span: f64,
    /// Nothing if none was measured.
    pub quantiles: Option<Quantiles>,
}

/// Latencies over time as bands between quantiles: the darker, the more of the messages lie there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatMap {
    /// Its description.
    pub title: String,
    /// The title of the vertical axis.
    pub axis: String,
    /// Length of the time axis in seconds.
    pub seconds: f64,
    /// Moments in order of time.
    pub columns: Vec<HeatColumn>,
    /// Stages behind it.
    pub stages: Vec<StageBand>,
    /// Vertical marks.
    pub marks: Vec<TimeMark>,
}

/// A drawn column: its place and its six edges from the minimum to the maximum.
type Column = (f64, f64, [u64; 6]);

impl HeatMap {
    /// Seconds in one column.
    pub fn column_seconds(&self) -> usize {
        self.columns.len().div_ceil(COLUMNS_MAX).max(1)
    }

    /// Draws it; none if nothing was measured.
    pub fn draw(&self) -> Option<Drawing> {
        let columns: Vec<Option<Column>> = self
            .columns
            .chunks(self.column_seconds())
            .map(merge)
            .collect();
        let edges = || columns.iter().flatten().flat_map(|column| column.2);
        let low = edges().filter(|edge| *edge > 0).min()?;
        let high = edges().max()?;
        let of = thrum_figures::fraction;
        let y = Scale::logarithmic(of(low), of(high), (BOTTOM, TOP));
        let frame = TimeFrame::new(&self.title, &self.axis, self.seconds);
        let mut drawing = frame.open(y, Unit::Nanoseconds, &self.stages);
        let mut labels = Vec::new();
        for band in 0..EDGES.len() {
            let bands = columns.split(Option::is_none).filter(|run| !run.is_empty());
            let d: String = bands
                .map(|run| outline(run, band, |at| frame.x(at), |edge| y.at(of(edge))))
                .collect();
            drawing.path(&format!("l h h{}", band + 1), EDGES[band], &d);
            if let Some((_, _, edges)) = columns.iter().rev().find_map(|column| *column) {
                labels.push(EndLabel {
                    y: y.at(of(edges[band + 1])),
                    text: EDGES[band],
                    style: Swatch::Shade,
                });
            }
        }
        close(&mut drawing);
        // Later ones end higher, and the order stays where they end together.
        labels.reverse();
        end_labels(&mut drawing, labels);
        frame.marks(&mut drawing, &self.marks);
        Some(drawing)
    }
}

/// Several moments as one: the highest of each quantile, the lowest minimum.
fn merge(moments: &[HeatColumn]) -> Option<Column> {
    let first = moments.first()?;
    let last = moments.last()?;
    let mut edges: Option<[u64; 6]> = None;
    for quantiles in moments.iter().filter_map(|moment| moment.quantiles) {
        let Quantiles {
            min,
            p50,
            p90,
            p99,
            p99_9,
            max,
            ..
        } = quantiles;
        let next = [min, p50, p90, p99, p99_9, max];
        edges = Some(edges.map_or(next, |known| {
            let mut merged = [0; 6];
            for (place, (known, next)) in merged.iter_mut().zip(known.into_iter().zip(next)) {
                *place = known.max(next);
            }
            merged[0] = known[0].min(next[0]);
            merged
        }));
    }
    Some((first.at, last.at + last.span, edges?))
}

/// A band as steps along its upper edge and back along its lower one.
fn outline(
    columns: &[Option<Column>],
    band: usize,
    x: impl Fn(f64) -> f64,
    y: impl Fn(u64) -> f64,
) -> String {
    let steps = |edge: usize| {
        let (x, y) = (&x, &y);
        columns
            .iter()
            .flatten()
            .flat_map(move |&(from, to, edges)| {
                [(x(from), y(edges[edge])), (x(to), y(edges[edge]))]
            })
    };
    let mut points: Vec<_> = steps(band + 1).collect();
    let mut lower: Vec<_> = steps(band).collect();
    lower.reverse();
    points.extend(lower);
    path(&points) + "z"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(at: u32, p50: u64, max: u64) -> HeatColumn {
        let quantiles = Quantiles {
            count: 1,
            min: p50 / 2,
            p50,
            p90: max,
            p99: max,
            p99_9: max,
            max,
            ..Quantiles::default()
        };
        HeatColumn {
            at: f64::from(at),
            span: 1.0,
            quantiles: Some(quantiles),
        }
    }

    #[test]
    fn merged_columns_never_hide_a_spike() {
        let merged = merge(&[column(0, 100, 200), column(1, 50, 9_000)]);
        assert_eq!(
            merged,
            Some((0.0, 2.0, [25, 100, 9_000, 9_000, 9_000, 9_000]))
        );
    }

    #[test]
    fn a_day_has_as_many_columns_as_can_be_seen() {
        let columns = (0..86_400).map(|at| column(at, 1_000, 2_000)).collect();
        let map = HeatMap {
            columns,
            seconds: 86_400.0,
            ..HeatMap::default()
        };
        assert_eq!(map.column_seconds(), 600);
        assert!(
            map.draw()
                .is_some_and(|drawing| drawing.inline().len() < 20_000)
        );
        assert_eq!(HeatMap::default().draw(), None);
    }
}
