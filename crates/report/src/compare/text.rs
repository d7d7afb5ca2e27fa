//! Comparisons for people and for programs.

use std::fmt::Write as _;

use super::{Comparison, NoiseSource, Row, Side, Verdict};
use crate::grid;
use crate::metric;
use crate::units::figure;

/// Figures of the line in the summary and their short names.
const IN_LINE: [(&str, &str); 6] = [
    ("e2e.p99", "p99"),
    ("connect.p99", "connect p99"),
    ("rate.received", "rate"),
    ("lost", "lost"),
    ("broker.cpu_per_message", "cpu/message"),
    ("broker.rss", "rss"),
];

const PERCENTILES: &str = "Percentiles of several runs are those of all their values together, never means of \
                           percentiles; other figures are medians.";
const OF_RUNS: &str = "± is the noise: medians of as many runs of the same thing differ by less 95 times of 100; of 20 figures that did not change, one looks changed.";
const OF_SECONDS: &str = "± is the noise, from the seconds of the hold and at least 5 %, as there are fewer than three runs a side; repeat each side three times for one that holds between runs.";
const OF_VALUES: &str = "Figures that are unknown per second use the number of their values.";
const UNKNOWN: &str = "'not comparable': a figure or its noise is not known, or a run is invalid.";

/// A table of figures, one column per candidate; all comparisons have the same baseline.
pub fn text(comparisons: &[Comparison]) -> String {
    let mut text = String::new();
    let sides: Vec<Vec<String>> = sides(comparisons)
        .map(|(name, side)| vec![name, describe(side)])
        .collect();
    text.push_str(&grid::grid(&sides, 2));
    for warning in warnings(comparisons) {
        writeln!(text, "  ! {warning}").ok();
    }
    text.push('\n');
    text.push_str(&grid::grid(&rows(comparisons), 1));
    text.push('\n');
    for note in notes(comparisons) {
        writeln!(text, "  {note}").ok();
    }
    text
}

/// The same as Markdown.
pub fn markdown(comparisons: &[Comparison]) -> String {
    let mut text = String::from("# Comparison\n\n");
    for (name, side) in sides(comparisons) {
        writeln!(text, "- {name}: {}", grid::escaped(&describe(side))).ok();
    }
    for warning in warnings(comparisons) {
        writeln!(text, "- **{}**", grid::escaped(&warning)).ok();
    }
    text.push('\n');
    text.push_str(&grid::markdown(&rows(comparisons), 1));
    for note in notes(comparisons) {
        writeln!(text, "\n{note}").ok();
    }
    text
}

/// The same for programs: an array of [`Comparison`].
pub fn json(comparisons: &[Comparison]) -> String {
    let mut text = serde_json::to_string_pretty(comparisons).unwrap_or_default();
    text.push('\n');
    text
}

/// The figures that matter most in one line: `p99 −12 % ±4 (better)   rate +0.0 %`.
pub fn versus_line(comparison: &Comparison) -> String {
    let rows = IN_LINE.iter().filter_map(|(metric, name)| {
        let row = comparison.row(metric)?;
        let is_second_choice = *metric == "connect.p99" && comparison.row("e2e.p99").is_some();
        let is_unchanged_count = *metric == "lost" && row.change == Some(0.0);
        (!is_second_choice && !is_unchanged_count).then(|| format!("{name} {}", in_line(row)))
    });
    rows.collect::<Vec<_>>().join("   ")
}

fn in_line(row: &Row) -> String {
    let noise = row.noise.filter(|noise| *noise > 0.0);
    let noise = noise.map_or_else(String::new, |noise| format!(" ±{}", figure(noise * 100.0)));
    match row.verdict {
        Verdict::Same => format!("{}{noise}", change(row)),
        verdict => format!("{}{noise} ({})", change(row), verdict.text()),
    }
}

fn sides(comparisons: &[Comparison]) -> impl Iterator<Item = (String, &Side)> {
    let baseline = comparisons
        .first()
        .map(|first| ("baseline".to_owned(), &first.baseline));
    let candidates = comparisons.iter().enumerate();
    let candidates = candidates
        .map(|(index, comparison)| (candidate(index, comparisons.len()), &comparison.candidate));
    baseline.into_iter().chain(candidates)
}

fn candidate(index: usize, of: usize) -> String {
    match of {
        1 => "candidate".to_owned(),
        _ => format!("candidate {}", index + 1),
    }
}

fn describe(side: &Side) -> String {
    let runs = match side.runs {
        1 => "1 run of".to_owned(),
        runs => format!("{runs} runs from"),
    };
    format!(
        "{} · {} · {runs} {}",
        side.scenario, side.broker, side.started
    )
}

fn warnings(comparisons: &[Comparison]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, comparison) in comparisons.iter().enumerate() {
        for warning in &comparison.warnings {
            let named = match comparisons.len() {
                1 => warning.clone(),
                of => format!("{}: {warning}", candidate(index, of)),
            };
            warnings.push(named);
        }
    }
    warnings
}

fn rows(comparisons: &[Comparison]) -> Vec<Vec<String>> {
    let mut head = vec!["figure".to_owned(), "baseline".to_owned()];
    for index in 0..comparisons.len() {
        head.push(candidate(index, comparisons.len()));
        head.extend(["change", "noise", "verdict"].map(str::to_owned));
    }
    let mut rows = vec![head];
    for name in super::COMPARED {
        let found: Vec<Option<&Row>> = comparisons
            .iter()
            .map(|comparison| comparison.row(name))
            .collect();
        let Some(first) = found.iter().flatten().next() else {
            continue;
        };
        let mut cells = vec![name.to_owned(), value(name, first.baseline)];
        for row in &found {
            cells.extend(row.map_or_else(|| ["-"; 4].map(str::to_owned), cells_of));
        }
        rows.push(cells);
    }
    rows
}

fn cells_of(row: &Row) -> [String; 4] {
    let noise = match (row.noise_source, row.noise) {
        (NoiseSource::Exact, _) | (_, None) => "-".to_owned(),
        (_, Some(noise)) => format!("±{} %", figure(noise * 100.0)),
    };
    let verdict = row.verdict.text().to_owned();
    [
        value(row.metric, row.candidate),
        change(row),
        noise,
        verdict,
    ]
}

fn value(name: &str, value: Option<f64>) -> String {
    let unit = metric::find(name).map(|metric| metric.unit);
    match value.zip(unit) {
        Some((value, unit)) => metric::format(unit, value),
        None => "-".to_owned(),
    }
}

/// `−12 %`, `+0.4 %`; growth from 0 is shown as the value itself.
fn change(row: &Row) -> String {
    let Some(change) = row.change else {
        return match row.candidate.zip(row.baseline) {
            Some((candidate, _)) => format!("0 → {}", value(row.metric, Some(candidate))),
            None => "-".to_owned(),
        };
    };
    let percent = change.abs() * 100.0;
    let sign = if change < 0.0 { '−' } else { '+' };
    if percent < 0.1 && percent > 0.0 {
        format!("{sign}{percent:.2} %")
    } else if percent < 10.0 {
        format!("{sign}{percent:.1} %")
    } else {
        format!("{sign}{} %", figure(percent))
    }
}

fn notes(comparisons: &[Comparison]) -> Vec<&'static str> {
    let rows = || comparisons.iter().flat_map(|comparison| &comparison.rows);
    let has = |source| rows().any(|row| row.noise_source == source);
    let are_not_comparable = rows().any(|row| row.verdict == Verdict::NotComparable);
    let notes = [
        (true, PERCENTILES),
        (has(NoiseSource::Runs), OF_RUNS),
        (has(NoiseSource::Seconds), OF_SECONDS),
        (has(NoiseSource::Values), OF_VALUES),
        (are_not_comparable, UNKNOWN),
    ];
    let told = notes.into_iter().filter(|(is_told, _)| *is_told);
    told.map(|(_, note)| note).collect()
}
