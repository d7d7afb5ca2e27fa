//! A comparison as the page shows it.

use serde::{Deserialize, Serialize};

use super::view::{brief, cut};
use crate::compare::{self, Comparison, Row, Verdict, cells};

/// Most runs side by side, and most figures: as many as fit on a page and into its size.
const COLUMNS_MAX: usize = 8;
const ROWS_MAX: usize = 80;
/// Longest text of a cell in bytes, escaped.
const CELL_MAX: usize = 60;
/// Longest sentence and longest Markdown in bytes, escaped.
const CONCLUSION_MAX: usize = 600;
const MARKDOWN_MAX: usize = 12 * 1024;

/// Runs side by side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ComparisonTable {
    /// The comparison in one sentence.
    pub conclusion: String,
    /// The comparison as Markdown, to copy; empty if there is none.
    pub markdown: String,
    /// The meaning of each cell of a row: `baseline`, `this run`, `change`.
    pub columns: Vec<String>,
    /// The figures.
    pub rows: Vec<ComparisonRow>,
}

/// One figure of all runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ComparisonRow {
    /// Name of the figure: `e2e.p99`.
    pub name: String,
    /// Its unit, where the cells do not contain it.
    pub unit: String,
    /// One per column.
    pub cells: Vec<String>,
    /// The winner, or that there is none.
    pub note: String,
    /// `good` if this run is better, `bad` if it is worse, else empty.
    pub class: String,
}

impl ComparisonTable {
    /// This run as the candidate, `B`, of a comparison; `baseline` is the name of the other, `A`.
    pub fn new(comparison: &Comparison, baseline: &str) -> Self {
        let columns = [&format!("A: {baseline}"), "B: this run", "change", "noise"];
        let (gates, further): (Vec<&Row>, Vec<&Row>) =
            comparison.rows.iter().partition(|row| row.is_gate);
        Self {
            conclusion: compare::conclusion(comparison, "B"),
            markdown: compare::markdown(std::slice::from_ref(comparison)),
            columns: columns.map(str::to_owned).into(),
            rows: gates.into_iter().chain(further).map(row_of).collect(),
        }
    }

    /// The table within the limits of a page.
    pub(super) fn bounded(&self) -> Self {
        let cells = |cells: &[String]| -> Vec<String> {
            cells
                .iter()
                .take(COLUMNS_MAX)
                .map(|cell| brief(cell, CELL_MAX))
                .collect()
        };
        let row = |row: &ComparisonRow| ComparisonRow {
            name: brief(&row.name, CELL_MAX),
            unit: brief(&row.unit, CELL_MAX),
            cells: cells(&row.cells),
            note: brief(&row.note, CELL_MAX),
            class: brief(&row.class, CELL_MAX),
        };
        Self {
            conclusion: brief(&self.conclusion, CONCLUSION_MAX),
            markdown: cut(&self.markdown, MARKDOWN_MAX),
            columns: cells(&self.columns),
            rows: self.rows.iter().take(ROWS_MAX).map(row).collect(),
        }
    }
}

fn row_of(row: &Row) -> ComparisonRow {
    let [baseline, candidate, change, noise, winner] = cells(row, "B");
    ComparisonRow {
        name: row.metric.to_owned(),
        unit: String::new(),
        cells: vec![baseline, candidate, change, noise],
        note: match row.verdict {
            Verdict::Better | Verdict::Worse => format!("{winner} wins"),
            Verdict::Same => row.verdict.text().to_owned(),
            Verdict::NotComparable => winner,
        },
        class: match row.verdict {
            Verdict::Better => "good",
            Verdict::Worse => "bad",
            Verdict::Same | Verdict::NotComparable => "",
        }
        .to_owned(),
    }
}
