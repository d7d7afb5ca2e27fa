//! Rows of a list, and what was said beside them.

use std::collections::BTreeMap;

use super::Row;

/// The rows of a list.
#[derive(Debug, Default)]
pub(in crate::command) struct Fetched {
    pub(in crate::command) rows: Vec<Row>,
    /// Rows on all pages, as the broker says.
    pub(super) matching: Option<u64>,
    /// There are further rows.
    pub(super) has_more: bool,
    /// Other numbers of the pages, summed.
    pub(in crate::command) others: BTreeMap<String, u64>,
    /// Texts of the last page.
    pub(in crate::command) texts: BTreeMap<String, String>,
}

impl From<Vec<Row>> for Fetched {
    fn from(rows: Vec<Row>) -> Self {
        Self {
            rows,
            ..Self::default()
        }
    }
}
