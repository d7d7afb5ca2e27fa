//! Latencies: quantiles, their distribution, and their change over time.

use std::ops::RangeInclusive;

use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use thrum_figures::{fraction, latency, whole};
use thrum_report::result::Distribution;

use super::phrase::{Part, Tone, fitted, named, text};
use super::plot::{Curve, Plot, Scale, bars};
use crate::history::{Latency, Timing};
use crate::snapshot::{Figures, Snapshot};
use crate::view::TimeScale;

/// Narrowest column of the panel, so that it does not move with its figures.
const CELL: usize = 9;

/// From this width on the panel has three columns.
const THREE_COLUMNS: usize = 39;

/// Widest histogram in cells.
const BARS_MAX: usize = 48;

/// The panel: quantiles in columns, the histogram in the last line.
pub(super) fn lines(snapshot: &Snapshot, width: u16) -> Vec<Line<'static>> {
    let found = snapshot.figures.as_ref();
    let Some((figures, of)) = found.and_then(|it| Some((it, it.latency.as_ref()?))) else {
        return vec![text("nothing measured yet", Tone::Quiet)];
    };
    let width = usize::from(width);
    let wide = columns(&[
        [
            bounded("p50", of, "p50"),
            quantile("p90", of, "p90"),
            bounded("p99", of, "p99"),
        ],
        [
            quantile("p99.9", of, "p99.9"),
            quantile("max", of, "max"),
            quantile("mean", of, "mean"),
        ],
    ]);
    let mut lines = if width >= THREE_COLUMNS && wide.iter().all(|line| line.width() <= width) {
        let mut lines = wide;
        lines.push(text(meaning(figures), Tone::Quiet));
        lines
    } else {
        let last = [quantile("p99.9", of, "p99.9"), quantile("max", of, "max")];
        let cell = |name: &str| bounded(&format!("{name:<5}"), of, name);
        vec![
            cell("p50"),
            cell("p99"),
            fitted(last, width.try_into().unwrap_or(u16::MAX)),
        ]
    };
    lines.push(histogram(of, width));
    lines
}

/// The subject of the figures, so that they are not confused.
const fn meaning(figures: &Figures) -> &'static str {
    match figures.history.timing {
        Timing::EndToEnd if figures.closed_loop => "closed loop: waiting is not counted",
        Timing::EndToEnd => "from intended send · ≤ the generator's part",
        Timing::Acknowledgement => "from PUBLISH · ≤ the generator's part",
        Timing::Connect => "from intended opening · ≤ the generator's part",
    }
}

/// Lines whose parts stand below each other.
fn columns<const COLUMNS: usize>(rows: &[[Part; COLUMNS]]) -> Vec<Line<'static>> {
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].width());
        widths.max().unwrap_or(0).max(CELL) + 2
    };
    let line = |row: &[Part; COLUMNS]| {
        let mut line = Line::default();
        for (column, cell) in row.iter().enumerate() {
            line.spans.extend(cell.spans.iter().cloned());
            if column + 1 < COLUMNS {
                let gap = width(column).saturating_sub(cell.width());
                line.push_span(Span::raw(" ".repeat(gap)));
            }
        }
        line
    };
    rows.iter().map(line).collect()
}

/// `p99 3.9ms`, or why there is no figure.
fn quantile(label: &str, of: &Distribution, figure: &str) -> Part {
    let tone = match (of.withheld.contains_key(figure), figure) {
        (true, _) => Tone::Quiet,
        (false, "p99") => Tone::Strong,
        (false, _) => Tone::Normal,
    };
    named(label, of.figure_text(figure), tone)
}

/// `p99 3.9ms ≤290µs`: the latter may be the generator's.
fn bounded(label: &str, of: &Distribution, figure: &str) -> Part {
    let mut part = quantile(label, of, figure);
    if let Some(bound) = of.bound_text(figure) {
        let bound = format!(" {}", bound.replace("≤ ", "≤"));
        part.push_span(Span::styled(bound, Tone::Quiet.style()));
    }
    part
}

/// The quantiles in the order of importance.
pub(super) fn parts(snapshot: &Snapshot) -> Vec<Part> {
    let figures = snapshot.figures.as_ref();
    let Some(of) = figures.and_then(|figures| figures.latency.as_ref()) else {
        return vec![text("nothing measured yet", Tone::Quiet)];
    };
    vec![
        bounded("p50", of, "p50"),
        bounded("p99", of, "p99"),
        quantile("p99.9", of, "p99.9"),
        quantile("max", of, "max"),
        quantile("p90", of, "p90"),
    ]
}

/// The p99 alone.
pub(super) fn main_part(snapshot: &Snapshot) -> Option<Part> {
    let of = snapshot.figures.as_ref()?.latency.as_ref()?;
    Some(quantile("p99", of, "p99"))
}

/// `41µs ▁▂▅█▆▃▂▁ 41ms`: shares of the values on a logarithmic scale from the least to the most.
fn histogram(of: &Distribution, width: usize) -> Line<'static> {
    let (curve, quantiles) = (of.curve.as_slice(), &of.quantiles);
    let (least, most) = (latency(quantiles.min), latency(quantiles.max));
    let room = width.saturating_sub(least.chars().count() + most.chars().count() + 2);
    let shares = shares(curve, quantiles.min..=quantiles.max, room.min(BARS_MAX));
    Line::from(vec![
        Span::styled(format!("{least} "), Tone::Quiet.style()),
        Span::styled(bars(&shares), Style::new().fg(Color::Cyan)),
        Span::styled(format!(" {most}"), Tone::Quiet.style()),
    ])
}

/// Part of the values in each of `bins` bins of equal width on a logarithmic scale.
fn shares(curve: &[(f64, u64)], range: RangeInclusive<u64>, bins: usize) -> Vec<f64> {
    let (low, high) = (logarithm(*range.start()), logarithm(*range.end()));
    if curve.is_empty() || bins == 0 || high <= low {
        return Vec::new();
    }
    let step = (high - low) / fraction(bins as u64);
    let mut below = 0.0;
    (1..=bins)
        .map(|bin| {
            let edge = low + step * fraction(bin as u64);
            let up_to = if bin == bins {
                1.0
            } else {
                part_below(curve, edge)
            };
            let share = (up_to - below).max(0.0);
            below = up_to.max(below);
            share
        })
        .collect()
}

/// Part of the values below a logarithm, by interpolation between the points of the curve.
fn part_below(curve: &[(f64, u64)], edge: f64) -> f64 {
    let next = curve.partition_point(|(_, ns)| logarithm(*ns) <= edge);
    let upper = curve.get(next);
    let lower = next.checked_sub(1).and_then(|previous| curve.get(previous));
    match (lower, upper) {
        (Some(&(low_part, low_ns)), Some(&(high_part, high_ns))) => {
            let (low, high) = (logarithm(low_ns), logarithm(high_ns));
            low_part + (high_part - low_part) * (edge - low) / (high - low)
        }
        (Some(_), None) => 1.0,
        (None, _) => 0.0,
    }
}

fn logarithm(ns: u64) -> f64 {
    fraction(ns.max(1)).log10()
}

/// The chart over time.
pub(super) fn plot(figures: &Figures, scale: TimeScale) -> Plot {
    let points = scale.points(&figures.history);
    let curve = |label, of: fn(Latency) -> u64, colour| Curve {
        label,
        points: points
            .iter()
            .map(|point| (point.at, point.latency.map(|found| fraction(of(found)))))
            .collect(),
        style: Style::new().fg(colour),
    };
    Plot {
        curves: vec![
            curve("p99.9", |found| found.p99_9, Color::Red),
            curve("p99", |found| found.p99, Color::Yellow),
            curve("p50", |found| found.p50, Color::Green),
        ],
        marks: figures.marks.iter().map(|mark| mark.at).collect(),
        scale: Scale::Logarithmic,
        seconds: scale.seconds(),
        label: |ns| latency(whole(ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_all_values() {
        let curve = [(0.0, 10), (0.5, 100), (0.9, 1_000), (1.0, 10_000)];
        let shares = shares(&curve, 10..=10_000, 3);
        for (share, expected) in shares.iter().zip([0.5, 0.4, 0.1]) {
            assert!((share - expected).abs() < 1e-9, "{shares:?}");
        }
    }

    #[test]
    fn equal_values_make_no_histogram() {
        assert!(shares(&[(0.0, 5), (1.0, 5)], 5..=5, 10).is_empty());
        assert!(shares(&[], 1..=5, 10).is_empty());
    }
}
