//! Brokers side by side as one page.

use serde::Serialize;

use super::disclosure::{Section, machine};
use super::page::{PageError, render};
use super::view::{NAME_MAX, brief, cut, style};
use crate::metric::Better;
use crate::svg::{Bar, BarChart};
use crate::versus::{
    Cell, Column, Judged, VersusBroker, VersusReport, VersusScenario, cells, columns,
    configurations, explanation, headings, notes, sentences, tables, winners,
};

/// Most scenarios and brokers of a page.
const SCENARIOS_MAX: usize = 24;
const BROKERS_MAX: usize = 12;
/// Longest configuration and scenario file, escaped.
const TEXT_BYTES_MAX: usize = 6 * 1024;
/// Longest sentence and longest Markdown in bytes, escaped.
const SENTENCE_MAX: usize = 600;
const MARKDOWN_MAX: usize = 32 * 1024;
/// Colours of brokers; their names stand beside them.
const COLOURS: usize = 6;
/// Longest text of a cell in bytes, escaped.
const CELL_MAX: usize = 60;

#[derive(Debug, Serialize)]
struct View {
    title: String,
    sentences: Vec<String>,
    explanation: String,
    notes: Vec<String>,
    scenarios: Vec<ScenarioView>,
    method: Vec<String>,
    disclosure: Vec<Section>,
    markdown: String,
    style: String,
    script: &'static str,
}

#[derive(Debug, Serialize)]
struct ScenarioView {
    name: String,
    summary: String,
    brokers: Vec<Heading>,
    rows: Vec<Row>,
    charts: Vec<String>,
}

/// A broker above its column.
#[derive(Debug, Serialize)]
struct Heading {
    /// Its colour, from 1.
    colour: usize,
    name: String,
    version: String,
}

/// A figure of all brokers: there are more figures than brokers, and a page has more height than
/// width.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    cells: Vec<CellView>,
    /// The winner, or that there is none; empty if the figure is not compared.
    winner: String,
    noise: String,
}

#[derive(Debug, Serialize)]
struct CellView {
    text: String,
    range: String,
    bound: String,
    class: String,
}

/// Draws the comparison: a table and bars per scenario, full disclosure at the end.
///
/// # Errors
///
/// If the template of the page does not render, which is a fault of this crate.
pub fn versus_page(report: &VersusReport) -> Result<String, PageError> {
    let shown = report.scenarios.iter().take(SCENARIOS_MAX);
    let mut judged: Vec<Judged<'_>> = shown.map(Judged::new).collect();
    let method = judged.first_mut().map(Judged::notes);
    let sentences = sentences(&mut judged).into_iter();
    let sentences = sentences.map(|sentence| brief(&sentence, SENTENCE_MAX));
    let view = View {
        title: brief(&report.title, NAME_MAX),
        sentences: sentences.collect(),
        explanation: explanation(report),
        notes: notes(report)
            .iter()
            .take(BROKERS_MAX)
            .map(|note| brief(note, NAME_MAX * 2))
            .collect(),
        scenarios: judged.iter_mut().map(scenario).collect(),
        method: method.unwrap_or_default(),
        disclosure: disclosure(report),
        markdown: cut(&tables(report), MARKDOWN_MAX),
        style: style(),
        script: include_str!("report.js"),
    };
    render(include_str!("versus.html.j2"), &view)
}

fn scenario(judged: &mut Judged<'_>) -> ScenarioView {
    let scenario = judged.scenario();
    let winners = winners(judged);
    let brokers = || scenario.brokers.iter().take(BROKERS_MAX);
    let columns_of: Vec<(&VersusBroker, Vec<Cell>)> = brokers()
        .map(|broker| (broker, cells(scenario, broker)))
        .collect();
    let rows = headings(scenario).into_iter().zip(winners).enumerate();
    let rows = rows.map(|(row, (name, winner))| {
        let cells = columns_of
            .iter()
            .enumerate()
            .filter_map(|(place, (broker, cells))| {
                Some(cell_view(
                    cells.get(row)?,
                    broker,
                    winner.place == Some(place),
                ))
            });
        Row {
            name,
            cells: cells.collect(),
            winner: brief(&winner.text, CELL_MAX),
            noise: winner.noise,
        }
    });
    let charted = columns(scenario).into_iter().filter(|column| column.chart);
    ScenarioView {
        name: brief(&scenario.name, NAME_MAX),
        summary: brief(&scenario.summary, NAME_MAX * 2),
        brokers: brokers()
            .enumerate()
            .map(|(place, broker)| Heading {
                colour: colour(place),
                name: brief(&broker.name, CELL_MAX),
                version: brief(broker.version_text(), CELL_MAX),
            })
            .collect(),
        rows: rows.collect(),
        charts: charted
            .filter_map(|column| bars(scenario, &column))
            .collect(),
    }
}

/// The number of a broker's colour, from 1.
const fn colour(place: usize) -> usize {
    place % COLOURS + 1
}

fn cell_view(cell: &Cell, broker: &VersusBroker, wins: bool) -> CellView {
    CellView {
        text: brief(&cell.text, CELL_MAX),
        range: brief(&cell.range, CELL_MAX),
        bound: cell.bound.clone(),
        class: match cell.good {
            None if broker.is_void() => " void",
            None if wins => " win",
            None => "",
            Some(true) => " good",
            Some(false) => " bad",
        }
        .to_owned(),
    }
}

fn bars(scenario: &VersusScenario, column: &Column) -> Option<String> {
    let bars = scenario
        .brokers
        .iter()
        .take(BROKERS_MAX)
        .enumerate()
        .filter_map(|(place, broker)| {
            let spread = column.spread(broker)?;
            Some(Bar {
                name: broker.name.clone(),
                detail: broker.version_text().to_owned(),
                value: spread.median,
                range: (spread.rounds > 1).then_some((spread.min, spread.max)),
                is_void: broker.is_void(),
                colour: colour(place),
            })
        });
    let chart = BarChart {
        title: column.name.to_owned(),
        axis: match column.better {
            Better::Lower => "less is better; whisker: lowest to highest round",
            Better::Higher => "more is better; whisker: lowest to highest round",
            Better::Neither => "whisker: lowest to highest round",
        }
        .to_owned(),
        unit: column.unit,
        bars: bars.collect(),
    };
    chart.draw().map(|drawing| drawing.inline())
}

fn disclosure(report: &VersusReport) -> Vec<Section> {
    let mut run = Section {
        title: "Command".to_owned(),
        ..Section::default()
    };
    let command = report.machine.bound(&report.command);
    run.rows
        .push(("command".to_owned(), brief(&command, NAME_MAX * 4)));
    run.rows
        .push(("rounds".to_owned(), report.rounds.to_string()));
    let mut sections = vec![run, machine("Machine", &report.machine)];
    let text = |title: String, text: &str| Section {
        title: brief(&title, NAME_MAX),
        text: cut(text.trim_end(), TEXT_BYTES_MAX),
        ..Section::default()
    };
    for broker in configurations(report).into_iter().take(BROKERS_MAX) {
        let title = format!("Configuration of {}", broker.label());
        sections.push(text(title, &broker.configuration));
    }
    for scenario in report.scenarios.iter().take(SCENARIOS_MAX) {
        let title = format!("Scenario {}", scenario.name);
        sections.push(text(title, &scenario.toml));
    }
    sections
}
