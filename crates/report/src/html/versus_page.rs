//! Brokers side by side as one page.

use serde::Serialize;

use super::disclosure::{Section, machine};
use super::page::{PageError, render};
use super::view::{NAME_MAX, brief, cut, style};
use crate::metric::Better;
use crate::svg::{Bar, BarChart};
use crate::versus::{
    Column, VersusReport, VersusScenario, cells, columns, explanation, headings, notes,
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
    headings: Vec<String>,
    rows: Vec<Row>,
    charts: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Row {
    broker: String,
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
    let rows = scenario.brokers.iter().take(BROKERS_MAX).map(|broker| Row {
        broker: brief(&broker.label(), CELL_MAX),
        cells: cells(scenario, broker)
            .into_iter()
            .map(|cell| CellView {
                text: brief(&cell.text, CELL_MAX),
                range: brief(&cell.range, CELL_MAX),
                class: match cell.good {
                    None => "",
                    Some(true) => " good",
                    Some(false) => " bad",
                },
            })
            .collect(),
    });
    let charted = columns(scenario).into_iter().filter(|column| column.chart);
    ScenarioView {
        name: brief(&scenario.name, NAME_MAX),
        summary: brief(&scenario.summary, NAME_MAX * 2),
        headings: headings(scenario),
        rows: rows.collect(),
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
                name: broker.label(),
                value: spread.median,
                range: (spread.rounds > 1).then_some((spread.low, spread.high)),
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
    for scenario in report.scenarios.iter().take(SCENARIOS_MAX) {
        let mut file = Section {
            title: brief(&format!("Scenario {}", scenario.name), NAME_MAX),
            text: cut(&scenario.toml, TEXT_BYTES_MAX),
            ..Section::default()
        };
        for broker in scenario.brokers.iter().take(BROKERS_MAX) {
            file.rows.push((
                brief(&broker.label(), CELL_MAX),
                brief(&broker.configuration, NAME_MAX * 4),
            ));
        }
        sections.push(file);
    }
    sections
}
