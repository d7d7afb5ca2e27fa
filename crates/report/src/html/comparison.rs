//! A comparison as the page shows it; the caller supplies the figures as text.

use serde::{Deserialize, Serialize};

use super::view::brief;

/// Most runs side by side, and most figures: as many as fit on a page and into its size.
const COLUMNS_MAX: usize = 8;
const ROWS_MAX: usize = 80;
/// Longest text of a cell in bytes, escaped.
const CELL_MAX: usize = 60;

/// Runs side by side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ComparisonTable {
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
    /// The verdict: `better`, `worse`, `within the noise`.
    pub note: String,
}

impl ComparisonTable {
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
        };
        Self {
            columns: cells(&self.columns),
            rows: self.rows.iter().take(ROWS_MAX).map(row).collect(),
        }
    }
}
