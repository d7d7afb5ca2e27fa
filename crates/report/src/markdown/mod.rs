//! `report.md`: a run for a wiki, a pull request or an issue, with everything that repeating it
//! takes.

mod disclosure;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use crate::grid;
use crate::latencies;
use crate::result::RunResult;
use crate::stages::{is_stage_line, stage_table};
use crate::summary::{
    conditions, errors_by_count, facts, invalid_lines, is_without_figures, recovery, result_lines,
    threshold_value, verdict_text, verdict_word,
};
use thrum_figures::{bytes, count, figure, fraction, percent};

/// Reasons of errors shown; all are in the result file.
const ERRORS_SHOWN: usize = 20;

/// Marks shown; all are in the result file.
const MARKS_SHOWN: usize = 100;

/// The report of a run.
pub fn markdown(run: &RunResult) -> String {
    let mut text = String::new();
    head(&mut text, run);
    section(&mut text, "Thresholds", &thresholds(run), 1);
    section(&mut text, "Results", &results(run), 2);
    latency_section(&mut text, run);
    stage_section(&mut text, run);
    section(&mut text, "Resources", &resources(run), 1);
    section(&mut text, "Errors", &errors(run), 1);
    section(&mut text, "Marks", &marks(run), 1);
    disclosure::write(&mut text, run);
    text
}

fn head(text: &mut String, run: &RunResult) {
    let validity = match run.validity.valid {
        _ if is_without_figures(run) => "",
        true => ", VALID",
        false => ", INVALID",
    };
    let name = grid::escaped(&run.scenario.name);
    writeln!(text, "# {name}: {}{validity}\n", verdict_word(run)).ok();
    if !run.scenario.summary.is_empty() {
        writeln!(text, "{}\n", grid::escaped(&run.scenario.summary)).ok();
    }
    writeln!(text, "{}\n", grid::escaped(&facts(run).join(" · "))).ok();
    writeln!(
        text,
        "**{}:** {}",
        verdict_word(run),
        grid::escaped(&verdict_text(run))
    )
    .ok();
    let mut notes = conditions(run);
    notes.extend(
        invalid_lines(run)
            .iter()
            .map(|line| format!("INVALID: {line}")),
    );
    if run.interrupted {
        notes.push("ended early from outside".to_owned());
    }
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in notes {
        writeln!(text, "- {}", grid::escaped(&note)).ok();
    }
}

/// A heading and its table, the first `words` columns to the left; nothing if the table has only a
/// head.
fn section(text: &mut String, heading: &str, rows: &[Vec<String>], words: usize) {
    if rows.len() > 1 {
        writeln!(text, "\n## {heading}\n").ok();
        text.push_str(&grid::markdown(rows, words));
    }
}

fn row<const CELLS: usize>(cells: [&str; CELLS]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn thresholds(run: &RunResult) -> Vec<Vec<String>> {
    let mut rows = vec![row(["limit", "measured", "margin", "kept"])];
    rows.extend(run.thresholds.iter().map(|threshold| {
        let limit = format!("{} {}", threshold.metric, threshold.condition);
        let margin = threshold.margin_text().unwrap_or_default();
        let kept = if threshold.pass { "✓" } else { "✗" };
        vec![
            limit,
            threshold_value(run, threshold),
            margin,
            kept.to_owned(),
        ]
    }));
    rows
}

/// The lines of the summary without latencies, which have their own table.
fn results(run: &RunResult) -> Vec<Vec<String>> {
    let mut rows = vec![row(["", "result"])];
    let is_latency = |subject: &str| {
        matches!(
            subject,
            "e2e" | "service" | "response" | "ack" | "connect" | "subscribe" | "reconnect"
        )
    };
    let is_bound =
        |subject: &str, text: &str| subject == "generator" && text.trim().starts_with('≤');
    for (subject, text) in result_lines(run) {
        if !is_latency(&subject) && !is_bound(&subject, &text) && !is_stage_line(&subject) {
            rows.push(vec![subject, text]);
        }
    }
    rows
}

/// Each figure with what of it may be the generator's, and why some are not to be used.
fn latency_section(text: &mut String, run: &RunResult) {
    let table = latencies::table(run);
    let head = ["latency", "values"].into_iter().chain(table.figures);
    let mut rows = vec![head.map(str::to_owned).collect::<Vec<String>>()];
    for row in table.rows {
        let void = if row.void { " (void)" } else { "" };
        let mut cells = vec![format!("{}{void}", row.name), row.count];
        for cell in row.cells {
            let note = superscript(cell.note);
            let bound = match cell.bound.as_str() {
                "" => String::new(),
                bound => format!(" ({bound})"),
            };
            cells.push(format!("{}{note}{bound}", cell.text));
        }
        rows.push(cells);
    }
    section(text, "Latencies", &rows, 1);
    for (number, note) in table.notes.iter().enumerate() {
        let gap = if number == 0 { "\n" } else { "" };
        writeln!(text, "{gap}{}. {}", number + 1, grid::escaped(note)).ok();
    }
}

/// The stages of messages inside the broker, and the parts of the mean.
fn stage_section(text: &mut String, run: &RunResult) {
    let Some(table) = stage_table(run) else {
        return;
    };
    let mut rows = vec![row(["part", "count", "mean", "p50", "p99", "max"])];
    rows.extend(table.parts.into_iter().filter_map(|part| {
        let is_stage = part.name.starts_with("broker");
        (!is_stage).then(|| row([part.name, "", &part.value, "", "", ""]))
    }));
    rows.extend(table.rows.iter().map(|stage| {
        row([
            stage.name,
            &stage.count,
            &stage.mean,
            &stage.p50,
            &stage.p99,
            &stage.max,
        ])
    }));
    section(text, "Where the time goes", &rows, 1);
    if !table.mean.is_empty() {
        writeln!(text, "\nThe mean from end to end is {}.", table.mean).ok();
    }
    for note in &table.notes {
        writeln!(text, "\n{}", grid::escaped(note)).ok();
    }
}

/// The number of a note; nothing for 0.
fn superscript(number: usize) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    if number == 0 {
        return String::new();
    }
    let digits = number.to_string();
    let digits = digits
        .bytes()
        .map(|digit| DIGITS[usize::from(digit - b'0')]);
    digits.collect()
}

/// CPU of the brokers and of their machines.
fn resources(run: &RunResult) -> Vec<Vec<String>> {
    let mut rows = vec![row([
        "",
        "CPU cores",
        "busiest second",
        "CPU per message",
        "whole machine per message",
        "stolen by its host",
        "memory",
    ])];
    let of = |name: &str, text: Option<String>| {
        run.validity
            .unless_withheld(name, text.unwrap_or_else(|| "–".to_owned()))
    };
    let each = |cost: Option<f64>| cost.map(|cost| format!("{}µs", figure(cost)));
    rows.extend(run.brokers.iter().map(|broker| {
        let usage = &broker.usage;
        let name = format!("broker {}", broker.target);
        vec![
            name.trim_end().to_owned(),
            of("broker.cores", Some(figure(usage.cores_avg))),
            of("broker.cores.max", Some(figure(usage.cores_max))),
            of("broker.cpu_per_message", each(usage.cpu_us_per_message)),
            of(
                "machine.cpu_per_message",
                each(usage.machine.cpu_us_per_message),
            ),
            percent(usage.machine.stolen),
            of("broker.rss", Some(bytes(fraction(usage.rss_max_bytes)))),
        ]
    }));
    rows
}

fn errors(run: &RunResult) -> Vec<Vec<String>> {
    let mut rows = vec![row(["reason", "count", "first", "last"])];
    rows.extend(
        errors_by_count(run)
            .into_iter()
            .take(ERRORS_SHOWN)
            .map(|error| {
                vec![
                    error.reason.clone(),
                    count(error.count),
                    format!("{}s", figure(error.first_seconds)),
                    format!("{}s", figure(error.last_seconds)),
                ]
            }),
    );
    rows
}

fn marks(run: &RunResult) -> Vec<Vec<String>> {
    let mut rows = vec![row(["what", "at", "clients"])];
    let shown = run.marks.iter().enumerate().take(MARKS_SHOWN);
    rows.extend(shown.map(|(index, mark)| {
        let recovery = recovery(run, index).unwrap_or_default();
        vec![mark.text.clone(), format!("{}s", figure(mark.at)), recovery]
    }));
    rows
}
