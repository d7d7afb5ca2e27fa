//! The comparison as Markdown, for a repository or an issue.

use std::fmt::Write as _;

use super::{
    Judged, VersusBroker, VersusReport, VersusScenario, Winner, columns, sentences, void_note,
};
use thrum_figures::{self as units, fraction};

/// Tables of all scenarios, then everything that a reader needs to repeat them.
pub fn markdown(report: &VersusReport) -> String {
    tables(report) + &disclosure(report)
}

/// The sentences and the tables of all scenarios.
pub(crate) fn tables(report: &VersusReport) -> String {
    let mut text = format!("# {}\n", line(&report.title));
    let mut judged: Vec<Judged<'_>> = report.scenarios.iter().map(Judged::new).collect();
    for sentence in sentences(&mut judged) {
        write!(text, "\n**{}**\n", line(&sentence)).ok();
    }
    write!(text, "\n{}\n", explanation(report)).ok();
    for (number, note) in notes(report).iter().enumerate() {
        let gap = if number == 0 { "\n" } else { "" };
        writeln!(text, "{gap}- {}", line(note)).ok();
    }
    for judged in &mut judged {
        text.push_str(&table(judged));
    }
    if let Some(judged) = judged.first_mut() {
        for note in judged.notes() {
            write!(text, "\n{}\n", line(&note)).ok();
        }
    }
    text
}

/// The meaning of the figures in the tables.
pub(crate) fn explanation(report: &VersusReport) -> String {
    let mut text = if report.rounds > 1 {
        format!(
            "Median of {} rounds, with [lowest..highest].",
            report.rounds
        )
    } else {
        "One round: differences of a few per cent may be chance.".to_owned()
    };
    let mut brokers = brokers(report).map(|(_, broker)| broker.valid());
    if brokers.any(|(valid, all)| valid < all) {
        text.push_str(" INVALID rounds do not count: in them the generator was the limit.");
    }
    text
}

/// Notes for the reader: the note of each broker, once, and the brokers whose figures are void.
pub(crate) fn notes(report: &VersusReport) -> Vec<String> {
    let mut notes = Vec::new();
    for (_, broker) in brokers(report).filter(|(_, broker)| !broker.note.is_empty()) {
        let note = format!("{}: {}", broker.name, broker.note);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let void = brokers(report).filter(|(_, broker)| broker.is_void());
    notes.extend(void.map(|(scenario, broker)| void_note(&broker.name, &scenario.name)));
    notes
}

/// The start command of each broker: the first known one, because the others differ in ports and
/// folders only.
pub(crate) fn configurations(report: &VersusReport) -> Vec<&VersusBroker> {
    let mut found: Vec<&VersusBroker> = Vec::new();
    for (_, broker) in brokers(report).filter(|(_, broker)| !broker.configuration.is_empty()) {
        if found.iter().all(|known| known.name != broker.name) {
            found.push(broker);
        }
    }
    found
}

fn brokers(report: &VersusReport) -> impl Iterator<Item = (&VersusScenario, &VersusBroker)> {
    report.scenarios.iter().flat_map(|scenario| {
        let brokers = scenario.brokers.iter();
        brokers.map(move |broker| (scenario, broker))
    })
}

/// A figure of a broker that was not measured.
pub(crate) const MISSING: &str = "–";

/// A cell: the median, the range of the rounds, and what may be the generator's.
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) range: String,
    pub(crate) bound: String,
    /// Of a verdict, whether it is a good one.
    pub(crate) good: Option<bool>,
}

impl Cell {
    fn plain(text: String) -> Self {
        Self {
            text,
            range: String::new(),
            bound: String::new(),
            good: None,
        }
    }
}

/// Cells of a broker, one per heading.
pub(crate) fn cells(scenario: &VersusScenario, broker: &VersusBroker) -> Vec<Cell> {
    let judged = |(good, all), yes, no| Cell {
        good: Some(good == all),
        ..Cell::plain(verdict(good, all, yes, no))
    };
    let (valid, all) = broker.valid();
    let columns = columns(scenario);
    let figures = columns.iter().map(|column| match column.spread(broker) {
        None => Cell::plain(MISSING.to_owned()),
        Some(spread) => Cell {
            text: spread.text(column.unit),
            range: spread.range_text(column.unit),
            bound: column.bound(broker).map_or_else(String::new, |bound| {
                format!("generator ≤ {}", units::latency(bound))
            }),
            good: None,
        },
    });
    [
        judged(broker.passed(), "PASS", "FAIL"),
        judged(broker.valid(), "VALID", "INVALID"),
        Cell::plain(format!("{valid} of {all} count")),
    ]
    .into_iter()
    .chain(figures)
    .collect()
}

/// Headings of the rows that are no figures.
const VERDICTS: [&str; 3] = ["protocol", "figures", "rounds"];

/// Headings of the rows.
pub(crate) fn headings(scenario: &VersusScenario) -> Vec<String> {
    let names = columns(scenario).into_iter().map(|column| column.name);
    VERDICTS
        .into_iter()
        .chain(names)
        .map(str::to_owned)
        .collect()
}

/// Who is better, one per heading.
pub(crate) fn winners(judged: &mut Judged<'_>) -> Vec<Winner> {
    let columns = columns(judged.scenario());
    let none = VERDICTS.map(|_| Winner::default());
    let found: Vec<Winner> = columns.iter().map(|column| judged.winner(column)).collect();
    none.into_iter().chain(found).collect()
}

fn verdict(good: usize, all: usize, yes: &str, no: &str) -> String {
    match good {
        _ if all == 0 => MISSING.to_owned(),
        good if good == all => yes.to_owned(),
        0 => no.to_owned(),
        good => format!("{no} in {} of {all}", all - good),
    }
}

/// A row for each figure, a column for each broker.
fn table(judged: &mut Judged<'_>) -> String {
    let scenario = judged.scenario();
    let winners = winners(judged);
    let mut text = format!("\n## {}\n\n", line(&scenario.name));
    if !scenario.summary.is_empty() {
        write!(text, "{}\n\n", line(&scenario.summary)).ok();
    }
    let labels = scenario.brokers.iter().map(VersusBroker::label);
    let mut head: Vec<String> = std::iter::once("figure".to_owned()).chain(labels).collect();
    head.extend(["winner", "noise"].map(str::to_owned));
    text.push_str(&table_row(&head));
    text.push('|');
    for column in 0..head.len() {
        text.push_str(if column == 0 { "---|" } else { "---:|" });
    }
    text.push('\n');
    let columns: Vec<Vec<Cell>> = scenario
        .brokers
        .iter()
        .map(|broker| cells(scenario, broker))
        .collect();
    for (row, (heading, winner)) in headings(scenario).into_iter().zip(winners).enumerate() {
        let mut texts = vec![heading];
        for column in &columns {
            texts.push(column.get(row).map_or_else(String::new, cell_text));
        }
        texts.extend([winner.text, winner.noise]);
        text.push_str(&table_row(&texts));
    }
    text
}

/// `1.2ms [1.1ms..1.4ms] (generator ≤ 60µs)`.
fn cell_text(cell: &Cell) -> String {
    let mut text = cell.text.clone();
    if !cell.range.is_empty() {
        write!(text, " {}", cell.range).ok();
    }
    if !cell.bound.is_empty() {
        write!(text, " ({})", cell.bound).ok();
    }
    text
}

fn table_row(cells: &[String]) -> String {
    let cells: Vec<_> = cells.iter().map(|cell| line(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn disclosure(report: &VersusReport) -> String {
    let machine = &report.machine;
    let mut text = "\n## Full disclosure\n\n".to_owned();
    let memory = units::bytes(fraction(machine.memory_bytes));
    let facts = [
        ("command", machine.bound(&report.command)),
        ("CPU", format!("{}, {} cores", machine.cpu, machine.cores)),
        ("memory", memory),
        (
            "system",
            format!("{}, kernel {}", machine.os, machine.kernel),
        ),
        (
            "open files per process",
            units::count(machine.open_files_max),
        ),
        ("clock", machine.clock.clone()),
    ];
    for (name, value) in facts {
        writeln!(text, "- {name}: {}", line(&value)).ok();
    }
    for (name, value) in &machine.settings {
        writeln!(text, "- {}: {}", line(name), line(value)).ok();
    }
    for broker in configurations(report) {
        let title = format!("Configuration of {}", broker.label());
        text.push_str(&block(&title, &broker.configuration));
    }
    for scenario in &report.scenarios {
        if !scenario.toml.is_empty() {
            text.push_str(&block(
                &format!("Scenario {}", scenario.name),
                &scenario.toml,
            ));
        }
    }
    text
}

/// A text as code; its fence is longer than any in it.
pub(crate) fn block(title: &str, content: &str) -> String {
    let ticks = content
        .split(|character| character != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(ticks.max(2) + 1);
    format!(
        "\n### {}\n\n{fence}\n{}\n{fence}\n",
        line(title),
        content.trim_end()
    )
}

/// Text as one line that no table and no markup ends.
fn line(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' => escaped.push(' '),
            '|' | '<' | '*' | '`' | '\\' | '#' => {
                escaped.push('\\');
                escaped.push(character);
            }
            other => escaped.push(other),
        }
    }
    escaped
}
