//! Latencies: quantiles, their distribution, and their change over time.

use std::ops::RangeInclusive;

use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use thrum_report::result::Quantiles;
use thrum_report::units::{fraction, latency, whole};

use super::canvas::Fill;
use super::phrase::{Part, Tone, named, text};
use super::plot::{Curve, Plot, Scale, bars};
use crate::history::{Latency, Timing};
use crate::snapshot::{Figures, Snapshot};
use crate::view::TimeScale;

/// Width of one quantile in the panel: `p99.9 810µs `.
const CELL: usize = 13;

/// Widest histogram in cells.
const BARS_MAX: usize = 48;

/// The panel: quantiles in columns, the histogram in the last line.
pub(super) fn lines(snapshot: &Snapshot, width: u16) -> Vec<Line<'static>> {
    let found = snapshot.figures.as_ref();
    let Some((figures, quantiles)) = found.and_then(|it| Some((it, it.latency?))) else {
        return vec![text("nothing measured yet", Tone::Quiet)];
    };
    let width = usize::from(width);
    let columns = (width / CELL).clamp(1, 3);
    let cells = quantile_parts(&quantiles);
    let mut lines: Vec<_> = cells.chunks(columns).map(row).collect();
    if columns == 3 {
        lines.push(text(meaning(figures), Tone::Quiet));
    }
    lines.push(histogram(&figures.curve, &quantiles, width));
    lines
}

/// The subject of the figures, so that they are not confused.
const fn meaning(figures: &Figures) -> &'static str {
    match figures.history.timing {
        Timing::EndToEnd if figures.closed_loop => "closed loop: waiting is not counted",
        Timing::EndToEnd => "from the intended send to the arrival",
        Timing::Acknowledgement => "from PUBLISH to its acknowledgement",
        Timing::Connect => "from the connection to CONNACK",
    }
}

fn row(cells: &[Part]) -> Line<'static> {
    let mut line = Line::default();
    for cell in cells {
        let width = cell.width();
        line.spans.extend(cell.spans.iter().cloned());
        line.push_span(Span::raw(" ".repeat(CELL.saturating_sub(width))));
    }
    line
}

fn quantile_parts(quantiles: &Quantiles) -> [Part; 6] {
    let cell = |name: &str, ns, tone| named(&format!("{name:<5}"), latency(ns), tone);
    [
        cell("p50", quantiles.p50, Tone::Normal),
        cell("p90", quantiles.p90, Tone::Normal),
        cell("p99", quantiles.p99, Tone::Strong),
        cell("p99.9", quantiles.p99_9, Tone::Normal),
        cell("max", quantiles.max, Tone::Normal),
        cell("mean", quantiles.mean, Tone::Normal),
    ]
}

/// The quantiles in the order of importance.
pub(super) fn parts(snapshot: &Snapshot) -> Vec<Part> {
    let quantiles = snapshot
        .figures
        .as_ref()
        .and_then(|figures| figures.latency);
    let Some(quantiles) = quantiles else {
        return vec![text("nothing measured yet", Tone::Quiet)];
    };
    vec![
        named("p50", latency(quantiles.p50), Tone::Normal),
        named("p99", latency(quantiles.p99), Tone::Strong),
        named("p99.9", latency(quantiles.p99_9), Tone::Normal),
        named("max", latency(quantiles.max), Tone::Normal),
        named("p90", latency(quantiles.p90), Tone::Normal),
    ]
}

/// `41µs ▁▂▅█▆▃▂▁ 41ms`: shares of the values on a logarithmic scale from the least to the most.
fn histogram(curve: &[(f64, u64)], quantiles: &Quantiles, width: usize) -> Line<'static> {
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
        fill: Fill::Line,
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
