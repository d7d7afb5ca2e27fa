//! A page of results as Markdown: tables of scenarios and brokers, each row with its rounds, its
//! validity and the part of a latency that may be the generator's.

mod cells;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Deserialize;

use crate::grid;
use crate::result::{AFFINITY, Machine};
use crate::versus::{self, VersusBroker, VersusReport, VersusScenario};
use thrum_figures::{bytes, count, figure, fraction};

/// Fewest rounds of which a sentence about two brokers can tell anything.
const ROUNDS_TO_CONCLUDE: usize = 3;

/// The figures of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Columns {
    /// Rate, latency, CPU and memory; of scenarios without messages those of connecting.
    #[default]
    Load,
    /// Deliveries, lost connections, and the time until they were back.
    Availability,
}

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Its heading.
    pub title: String,
    /// Markdown below the heading.
    pub text: String,
    /// The command line that measures all of it again.
    pub command: String,
    /// The machine of all runs.
    pub machine: Machine,
    /// The tables.
    pub tables: Vec<PageTable>,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct PageTable {
    /// Its heading.
    pub title: String,
    /// Markdown below the heading.
    pub text: String,
    /// Its figures.
    pub columns: Columns,
    /// Its rows.
    pub rows: Vec<PageRow>,
}

/// A scenario with all its brokers.
#[derive(Clone, Debug, Default)]
pub struct PageRow {
    /// The scenario and the flags that changed it.
    pub label: String,
    /// Its runs.
    pub scenario: VersusScenario,
    /// Runs without figures: the broker, and why.
    pub failures: Vec<Failure>,
}

/// A run without figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Name of the broker.
    pub broker: String,
    /// What happened.
    pub why: String,
}

impl PageRow {
    fn failures_of(&self, broker: &VersusBroker) -> usize {
        let failures = self.failures.iter();
        failures
            .filter(|failure| failure.broker == broker.name)
            .count()
    }
}

/// The page as Markdown.
pub fn markdown(page: &Page) -> String {
    let mut text = format!("# {}\n", page.title.trim());
    paragraph(&mut text, &page.text);
    text.push('\n');
    text.push_str(&head(page));
    for table in &page.tables {
        write!(text, "\n## {}\n", table.title.trim()).ok();
        paragraph(&mut text, &table.text);
        write!(text, "\n{}\n", conditions(table)).ok();
        table_text(&mut text, table);
    }
    text.push_str(&how_to_read(page));
    write!(
        text,
        "\n## To repeat\n\n```\n{}\n```\n",
        page.machine.bound(page.command.trim())
    )
    .ok();
    let report = all(page);
    for broker in versus::configurations(&report) {
        let title = format!("Start of {}", broker.label());
        text.push_str(&versus::block(&title, &broker.configuration));
    }
    text
}

fn paragraph(text: &mut String, added: &str) {
    if !added.trim().is_empty() {
        write!(text, "\n{}\n", added.trim()).ok();
    }
}

/// Machine, brokers and days.
fn head(page: &Page) -> String {
    let machine = &page.machine;
    let mut days = BTreeSet::new();
    let mut brokers: Vec<String> = Vec::new();
    for broker in brokers_of(page) {
        let started = broker.runs.iter().filter_map(|run| run.started.get(..10));
        days.extend(started);
        if !broker.runs.is_empty() && !brokers.contains(&broker.label()) {
            brokers.push(broker.label());
        }
    }
    let days = match (days.first(), days.last()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (Some(day), _) => (*day).to_owned(),
        (None, _) => "not measured yet".to_owned(),
    };
    let bound = machine
        .settings
        .get(AFFINITY)
        .map_or_else(String::new, |cores| {
            format!(" (generator and brokers bound to {cores})")
        });
    let facts = [
        format!("**Measured** {days} with `thrum bench`, generator and brokers on one machine."),
        format!(
            "**Machine** {} cores{bound}, {}, {} of memory, {}, kernel {}, {} open files per process.",
            machine.cores,
            machine.cpu,
            bytes(fraction(machine.memory_bytes)),
            machine.os,
            machine.kernel,
            count(machine.open_files_max)
        ),
        format!("**Brokers** {}.", brokers.join("; ")),
    ];
    let mut notes: Vec<String> = Vec::new();
    for broker in brokers_of(page).filter(|broker| !broker.note.is_empty()) {
        let note = format!("**{}** {}", broker.name, broker.note);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let facts = facts.into_iter().chain(notes);
    let lines: Vec<String> = facts.map(|fact| format!("- {fact}\n")).collect();
    lines.concat()
}

/// Rounds, their length and their loop.
fn conditions(table: &PageTable) -> String {
    let runs = || {
        let brokers = table.rows.iter().flat_map(|row| &row.scenario.brokers);
        brokers.flat_map(|broker| &broker.runs)
    };
    let most = table.rows.iter().flat_map(|row| &row.scenario.brokers);
    let rounds: BTreeSet<usize> = most.map(|broker| broker.runs.len()).collect();
    let holds: BTreeSet<String> = runs()
        .map(|run| figure(run.scenario.stages.hold.round()))
        .collect();
    let loops: BTreeSet<&str> = runs()
        .filter(|run| run.has_load())
        .map(|run| {
            if run.scenario.load.closed_loop {
                "closed loop"
            } else {
                "open loop"
            }
        })
        .collect();
    let loops: Vec<&str> = loops.into_iter().collect();
    let [first, last] = [rounds.first(), rounds.last()].map(|end| end.copied().unwrap_or(0));
    let number = match (first == last, last) {
        (true, 1) => "One round".to_owned(),
        (true, _) => format!("{last} rounds"),
        (false, _) => format!("{first} to {last} rounds"),
    };
    let holds: Vec<String> = holds.into_iter().collect();
    let mut text = format!("{number} of {} s", holds.join(" or "));
    if !loops.is_empty() {
        write!(text, ", {}", loops.join(" and ")).ok();
    }
    text.push('.');
    if last > 1 {
        text.push_str(" Medians, with [lowest..highest].");
    } else {
        text.push_str(" A difference of a few per cent may be chance.");
    }
    text
}

fn table_text(text: &mut String, table: &PageTable) {
    let (connections, messages): (Vec<&PageRow>, Vec<&PageRow>) = table
        .rows
        .iter()
        .partition(|row| table.columns == Columns::Load && row.scenario.connections_only());
    for rows in [messages, connections] {
        let Some(first) = rows.first() else {
            continue;
        };
        let columns = cells::columns(table.columns, first.scenario.connections_only());
        let mut lines = vec![cells::headings(&columns)];
        for row in &rows {
            let brokers = row.scenario.brokers.iter();
            lines.extend(brokers.map(|broker| cells::row(row, broker, &columns)));
        }
        text.push('\n');
        text.push_str(&lines_text(&lines));
        let notes = notes(&rows);
        for (index, note) in notes.iter().enumerate() {
            let gap = if index == 0 { "\n" } else { "" };
            writeln!(text, "{gap}- {}", grid::escaped(note)).ok();
        }
    }
}

/// A table; brackets are ranges here and no links.
fn lines_text(rows: &[Vec<String>]) -> String {
    grid::markdown(rows, 2).replace("\\[", "[")
}

/// What is shown about the brokers, why rows are void, and what ended without figures.
fn notes(rows: &[&PageRow]) -> Vec<String> {
    let mut notes = Vec::new();
    for row in rows {
        let enough = |broker: &VersusBroker| broker.valid().0 >= ROUNDS_TO_CONCLUDE;
        if row.scenario.brokers.len() > 1 && row.scenario.brokers.iter().all(enough) {
            let alone = VersusReport {
                scenarios: vec![row.scenario.clone()],
                ..VersusReport::default()
            };
            let told = versus::conclusions(&alone).into_iter();
            notes.extend(told.map(|sentence| format!("{}: {sentence}", row.label)));
        }
        for broker in row
            .scenario
            .brokers
            .iter()
            .filter(|broker| broker.is_void())
        {
            let reasons = broker.runs.iter().flat_map(|run| &run.validity.limits);
            let reason = reasons.map(String::as_str).next().unwrap_or_default();
            notes.push(format!(
                "{}, {}: INVALID in every round, so these figures are not the broker's: {reason}",
                row.label, broker.name
            ));
        }
        let failures = row.failures.iter();
        notes.extend(
            failures.map(|failure| format!("{}, {}: {}", row.label, failure.broker, failure.why)),
        );
    }
    notes
}

fn how_to_read(page: &Page) -> String {
    let mut text = "\n## How to read it\n\n".to_owned();
    let mut lines = vec![
        "`(≤ 20µs)` beside a latency: at most this much of it is the generator's own. `withheld`: the generator's part may be the whole figure.",
        "Rounds: those that are VALID, of those that were made. Only VALID rounds count; where there is none, the row shows what the generator could do.",
        "A figure with `(1 of 5)` was withheld in the other rounds.",
        "Promises: of all rounds, INVALID ones too, those in which the broker kept what the protocol promises: nothing lost of QoS 1 and 2 without a stated limit, QoS 2 once, in order.",
        "CPU per message is that of the broker's processes, in user and system mode, by messages received.",
        "Memory per connection is what a connection added to the broker's resident memory. Kernel memory per connection is what it added to the machine's kernel: with the generator on the same machine that is both ends, of which a broker's host has one; shown from 500 connections on.",
    ];
    if page
        .tables
        .iter()
        .any(|table| table.columns == Columns::Availability)
    {
        lines.push("Back: from the loss of a connection until the client is ready again.");
    }
    for line in lines {
        writeln!(text, "- {line}").ok();
    }
    text
}

fn brokers_of(page: &Page) -> impl Iterator<Item = &VersusBroker> {
    let rows = page.tables.iter().flat_map(|table| &table.rows);
    rows.flat_map(|row| &row.scenario.brokers)
}

/// All scenarios without their runs, for what is common to them.
fn all(page: &Page) -> VersusReport {
    let brokers = brokers_of(page).map(|broker| VersusBroker {
        runs: Vec::new(),
        ..broker.clone()
    });
    VersusReport {
        scenarios: vec![VersusScenario {
            brokers: brokers.collect(),
            ..VersusScenario::default()
        }],
        ..VersusReport::default()
    }
}

#[cfg(test)]
mod tests;
