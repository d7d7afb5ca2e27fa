//! Brokers side by side as one page.

use serde::Serialize;

use super::disclosure::{Section, machine};
use super::page::{PageError, render};
use super::view::{NAME_MAX, brief, cut, style};
use crate::metric::Better;
use crate::svg::{Bar, BarChart};
use crate::versus::{
    Column, VersusReport, VersusScenario, cells, columns, configurations, explanation, headings,
    notes,
};

/// Most scenarios and brokers of a page.
const SCENARIOS_MAX: usize = 24;
const BROKERS_MAX: usize = 12;
/// Longest configuration and scenario file, escaped.
const TEXT_BYTES_MAX: usize = 6 * 1024;
/// Longest text of a cell in bytes, escaped.
const CELL_MAX: usize = 60;

#[derive(Debug, Serialize)]
struct View {
    title: String,
    explanation: String,
    notes: Vec<String>,
    scenarios: Vec<ScenarioView>,
    disclosure: Vec<Section>,
    style: String,
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
    name: String,
    version: String,
}

/// A figure of all brokers: there are more figures than brokers, and a page has more height than
/// width.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    cells: Vec<CellView>,
}

#[derive(Debug, Serialize)]
struct CellView {
    text: String,
    range: String,
    class: &'static str,
}

/// Draws the comparison: a table and bars per scenario, full disclosure at the end.
///
/// # Errors
///
/// If the template of the page does not render, which is a fault of this crate.
pub fn versus_page(report: &VersusReport) -> Result<String, PageError> {
    let view = View {
        title: brief(&report.title, NAME_MAX),
        explanation: explanation(report),
        notes: notes(report)
            .iter()
            .take(BROKERS_MAX)
            .map(|note| brief(note, NAME_MAX * 2))
            .collect(),
        scenarios: report
            .scenarios
            .iter()
            .take(SCENARIOS_MAX)
            .map(scenario)
            .collect(),
        disclosure: disclosure(report),
        style: style(),
    };
    render(include_str!("versus.html.j2"), &view)
}

fn scenario(scenario: &VersusScenario) -> ScenarioView {
    let brokers = || scenario.brokers.iter().take(BROKERS_MAX);
    // The heading of the brokers is above the first column.
    let names = headings(scenario).into_iter().skip(1);
    let mut rows: Vec<Row> = names
        .map(|name| Row {
            name,
            cells: Vec::new(),
        })
        .collect();
    for broker in brokers() {
        for (row, cell) in rows.iter_mut().zip(cells(scenario, broker)) {
            row.cells.push(CellView {
                text: brief(&cell.text, CELL_MAX),
                range: brief(&cell.range, CELL_MAX),
                class: match cell.good {
                    None if broker.is_void() => " void",
                    None => "",
                    Some(true) => " good",
                    Some(false) => " bad",
                },
            });
        }
    }
    let charted = columns(scenario).into_iter().filter(|column| column.chart);
    ScenarioView {
        name: brief(&scenario.name, NAME_MAX),
        summary: brief(&scenario.summary, NAME_MAX * 2),
        brokers: brokers()
            .map(|broker| Heading {
                name: brief(&broker.name, CELL_MAX),
                version: brief(broker.version_text(), CELL_MAX),
            })
            .collect(),
        rows,
        charts: charted
            .filter_map(|column| bars(scenario, &column))
            .collect(),
    }
}

fn bars(scenario: &VersusScenario, column: &Column) -> Option<String> {
    let bars = scenario
        .brokers
        .iter()
        .take(BROKERS_MAX)
        .filter_map(|broker| {
            let spread = column.spread(broker)?;
            Some(Bar {
                name: broker.name.clone(),
                detail: broker.version_text().to_owned(),
                value: spread.median,
                range: (spread.rounds > 1).then_some((spread.min, spread.max)),
                is_void: broker.is_void(),
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
    run.rows
        .push(("command".to_owned(), brief(&report.command, NAME_MAX * 4)));
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
