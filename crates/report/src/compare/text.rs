//! Comparisons for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use super::conclusion::conclusion;
use super::figures::{COMPARED, Kind};
use super::{Comparison, LEVEL, Method, NoiseSource, RUNS_NEEDED, Range, Row, Side, Verdict};
use crate::grid;
use crate::metric;
use crate::result::{VALUES_BEYOND_MIN, VALUES_MIN};
use thrum_figures::figure;

/// Figures of the line in the summary and their short names.
const IN_LINE: [(&str, &str); 6] = [
    ("e2e.p99", "p99"),
    ("connect.p99", "connect p99"),
    ("rate.received", "rate"),
    ("lost", "lost"),
    ("broker.cpu_per_message", "cpu/message"),
    ("broker.rss", "rss"),
];

/// Name of the baseline.
const BASELINE: &str = "A";

const CAUTIOUS: &str = "The least differences are doubled, because a change of the machine would \
                        look like one of the broker where one side was measured after the other, \
                        and chance alone reaches the level with three runs a side. Measure four \
                        and alternate them: A B A B.";
const FURTHER: &str = "Further figures are tested each alone and raise no alarm: of 20 equal ones, \
                       one looks worse and one better.";

/// A sentence, then tables of figures, one column per candidate; all comparisons have the same
/// baseline.
pub fn text(comparisons: &[Comparison]) -> String {
    let mut text = String::new();
    for (name, comparison) in named(comparisons) {
        writeln!(text, "  {}", conclusion(comparison, &name)).ok();
    }
    text.push('\n');
    let sides: Vec<Vec<String>> = sides(comparisons)
        .map(|(name, side)| vec![name, describe(side)])
        .collect();
    text.push_str(&grid::grid(&sides, 2));
    for warning in warnings(comparisons) {
        writeln!(text, "  ! {warning}").ok();
    }
    for table in tables(comparisons) {
        text.push('\n');
        text.push_str(&grid::grid(&table, 1));
    }
    text.push('\n');
    for note in notes(comparisons) {
        writeln!(text, "  {note}").ok();
    }
    text
}

/// The same as Markdown.
pub fn markdown(comparisons: &[Comparison]) -> String {
    let mut text = String::from("# Comparison\n\n");
    for (name, comparison) in named(comparisons) {
        let conclusion = conclusion(comparison, &name);
        writeln!(text, "**{}**\n", grid::escaped(&conclusion)).ok();
    }
    for (name, side) in sides(comparisons) {
        writeln!(text, "- {name}: {}", grid::escaped(&describe(side))).ok();
    }
    for warning in warnings(comparisons) {
        writeln!(text, "- **{}**", grid::escaped(&warning)).ok();
    }
    for table in tables(comparisons) {
        text.push('\n');
        text.push_str(&grid::markdown(&table, 1));
    }
    for note in notes(comparisons) {
        writeln!(text, "\n{note}").ok();
    }
    text
}

/// The same for programs: an array of [`Comparison`], each with its sentence.
pub fn json(comparisons: &[Comparison]) -> String {
    #[derive(Serialize)]
    struct Told<'a> {
        conclusion: String,
        #[serde(flatten)]
        comparison: &'a Comparison,
    }
    let told: Vec<Told<'_>> = named(comparisons)
        .map(|(name, comparison)| Told {
            conclusion: conclusion(comparison, &name),
            comparison,
        })
        .collect();
    let mut text = serde_json::to_string_pretty(&told).unwrap_or_default();
    text.push('\n');
    text
}

/// The figures that matter most in one line: `p99 −12 % ±4 (better)   rate +0.0 %`.
pub fn versus_line(comparison: &Comparison) -> String {
    let rows = IN_LINE.iter().filter_map(|(metric, name)| {
        let row = comparison.row(metric)?;
        let is_second_choice = *metric == "connect.p99" && comparison.row("e2e.p99").is_some();
        let is_unchanged_count = *metric == "lost" && row.change == Some(0.0);
        let is_withheld = row.noise_source == NoiseSource::TooFewValues;
        (!is_second_choice && !is_unchanged_count && !is_withheld)
            .then(|| format!("{name} {}", in_line(row)))
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

/// `B` for the first candidate, as the baseline is `A`.
fn candidate(index: usize) -> String {
    let letter = u8::try_from(index)
        .ok()
        .and_then(|index| b'B'.checked_add(index))
        .filter(u8::is_ascii_uppercase);
    letter.map_or_else(
        || format!("run {}", index + 2),
        |letter| char::from(letter).to_string(),
    )
}

fn named(comparisons: &[Comparison]) -> impl Iterator<Item = (String, &Comparison)> {
    let numbered = comparisons.iter().enumerate();
    numbered.map(|(index, comparison)| (candidate(index), comparison))
}

fn sides(comparisons: &[Comparison]) -> impl Iterator<Item = (String, &Side)> {
    let baseline = comparisons
        .first()
        .map(|first| (BASELINE.to_owned(), &first.baseline));
    let candidates = named(comparisons).map(|(name, comparison)| (name, &comparison.candidate));
    baseline.into_iter().chain(candidates)
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
    for (name, comparison) in named(comparisons) {
        for warning in &comparison.warnings {
            let told = match comparisons.len() {
                1 => warning.clone(),
                _ => format!("{name}: {warning}"),
            };
            warnings.push(told);
        }
    }
    warnings
}

/// The figures that may raise an alarm, then the others; a table without figures is left out.
fn tables(comparisons: &[Comparison]) -> Vec<Vec<Vec<String>>> {
    let tables = [("figure", true), ("further figure", false)].map(|(head, gates)| {
        let mut rows = vec![heads(head, comparisons.len())];
        for name in COMPARED {
            let each = comparisons.iter().map(|comparison| comparison.row(name));
            let found: Vec<Option<&Row>> = each.collect();
            let first = found.iter().flatten().next();
            if let Some(first) = first.filter(|first| first.is_gate == gates) {
                rows.push(line(first, &found));
            }
        }
        rows
    });
    tables.into_iter().filter(|rows| rows.len() > 1).collect()
}

fn heads(first: &str, candidates: usize) -> Vec<String> {
    let mut head = vec![first.to_owned(), BASELINE.to_owned()];
    for index in 0..candidates {
        head.push(candidate(index));
        head.extend(["change", "noise", "winner"].map(str::to_owned));
    }
    head
}

fn line(first: &Row, found: &[Option<&Row>]) -> Vec<String> {
    let [baseline, ..] = cells(first, "");
    let mut line = vec![first.metric.to_owned(), baseline];
    for (index, row) in found.iter().enumerate() {
        match row {
            Some(row) => line.extend(cells(row, &candidate(index)).into_iter().skip(1)),
            None => line.extend(["-"; 4].map(str::to_owned)),
        }
    }
    line
}

/// Baseline, candidate, change, noise and winner; `name` is the candidate's.
pub(crate) fn cells(row: &Row, name: &str) -> [String; 5] {
    [
        with_range(row.metric, row.baseline, row.baseline_range),
        with_range(row.metric, row.candidate, row.candidate_range),
        change(row),
        noise(row),
        winner(row, name),
    ]
}

/// Whose figure is better.
fn winner(row: &Row, candidate: &str) -> String {
    match (row.verdict, row.noise_source) {
        (Verdict::Better, _) => candidate.to_owned(),
        (Verdict::Worse, _) => BASELINE.to_owned(),
        (Verdict::Same, _) => "none".to_owned(),
        (Verdict::NotComparable, NoiseSource::TooFewValues) => "too few values".to_owned(),
        (Verdict::NotComparable, _) => Verdict::NotComparable.text().to_owned(),
    }
}

/// `±4 %`; `-` if it is not known.
pub(crate) fn noise(row: &Row) -> String {
    match (row.noise_source, row.noise) {
        (NoiseSource::Exact, _) | (_, None) => "-".to_owned(),
        (_, Some(noise)) => format!("±{} %", figure(noise * 100.0)),
    }
}

/// `4.4ms (4.1ms–4.9ms)`: the median and the range of several runs.
fn with_range(name: &str, median: Option<f64>, range: Option<Range>) -> String {
    let median = value(name, median);
    match range {
        Some(range) if range.lowest < range.highest => {
            let [lowest, highest] =
                [range.lowest, range.highest].map(|figure| value(name, Some(figure)));
            format!("{median} ({lowest}–{highest})")
        }
        _ => median,
    }
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

/// What the words and figures of comparisons mean.
pub(crate) fn notes(comparisons: &[Comparison]) -> Vec<String> {
    let rows = || comparisons.iter().flat_map(|comparison| &comparison.rows);
    let is_any = |is: fn(&Method) -> bool| comparisons.iter().any(|of| is(&of.method));
    let mut notes = Vec::new();
    if is_any(|method| method.is_by_runs) {
        notes.push(by_runs());
    }
    if let Some(few) = comparisons.iter().find(|of| !of.method.is_by_runs) {
        notes.push(by_band(few));
    }
    if is_any(|method| method.is_by_runs && method.is_cautious()) {
        notes.push(CAUTIOUS.to_owned());
    }
    if rows().any(|row| !row.is_gate) {
        notes.push(FURTHER.to_owned());
    }
    if rows().any(|row| row.noise_source == NoiseSource::TooFewValues) {
        notes.push(format!(
            "Withheld: a percentile of fewer than {VALUES_MIN} values, or with fewer than \
             {VALUES_BEYOND_MIN} beyond it."
        ));
    }
    notes
}

fn percent(part: f64) -> String {
    format!("{} %", figure(part * 100.0))
}

fn by_runs() -> String {
    let least = |kind: Kind| percent(kind.least());
    format!(
        "Figures are medians of the runs (lowest–highest). A winner is better by at least {} \
         (latency, memory), {} (CPU) or {} (rate), and by more than equal runs differ by in {} of \
         comparisons: an exact permutation test of these figures together, in each direction. \
         ± is the noise of two medians (95 % in each direction), and no winner is within it. A promise that only one side broke needs no test.",
        least(Kind::Latency),
        least(Kind::Cpu),
        least(Kind::Rate),
        percent(LEVEL),
    )
}

fn by_band(comparison: &Comparison) -> String {
    let between = |kind: Kind| percent(kind.between_runs());
    let least_p = comparison.method.least_p;
    let why = if least_p > LEVEL {
        let (least_p, level) = (figure(least_p), figure(LEVEL));
        format!("the least p is {least_p}, and an alarm needs {level}, so")
    } else {
        "each side has to show what its own differ by, so an alarm needs".to_owned()
    };
    format!(
        "{} and {} runs are too few to show what equal runs differ by: {why} at least \
         {RUNS_NEEDED} runs a side. Until then ± is the error within the runs (99 %) and what runs \
         are known to differ by: {} (latency), {} (CPU), {} (memory), {} (rate).",
        comparison.baseline.runs,
        comparison.candidate.runs,
        between(Kind::Latency),
        between(Kind::Cpu),
        between(Kind::Memory),
        between(Kind::Rate),
    )
}
