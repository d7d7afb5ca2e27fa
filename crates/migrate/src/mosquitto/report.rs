//! The result for each line, as text and as JSON.

use std::fmt;

use serde_json::{Value as Json, json};
use thrum_settings::problem::At;

/// The report about a configuration.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// A row for each line, in groups.
    pub(super) rows: Vec<Row>,
}

/// The result for a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The kind of the result.
    pub(super) outcome: Outcome,
    /// Its position.
    pub(super) at: At,
    /// Name of the option.
    pub(super) option: String,
    /// Keys that have it, for people.
    pub(super) keys: String,
    /// The note.
    pub(super) note: String,
}

/// The kind of a line's result; lines that need attention come last, next to the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    /// Carried over.
    Carried,
    /// Carried over, and not quite the same.
    Noted,
    /// Not carried over.
    Dropped,
    /// No version has it.
    Unknown,
}

impl Outcome {
    const ALL: [Self; 4] = [Self::Carried, Self::Noted, Self::Dropped, Self::Unknown];

    fn words(self) -> &'static str {
        match self {
            Self::Carried => "carried over",
            Self::Noted => "with a note",
            Self::Dropped => "not carried over",
            Self::Unknown => "unknown",
        }
    }

    /// For machines.
    fn name(self) -> &'static str {
        match self {
            Self::Carried => "carried",
            Self::Noted => "noted",
            Self::Dropped => "dropped",
            Self::Unknown => "unknown",
        }
    }
}

impl Report {
    /// Puts the rows in their order.
    pub(super) fn sort(&mut self) {
        self.rows
            .sort_by(|left, right| (left.outcome, &left.at).cmp(&(right.outcome, &right.at)));
    }

    fn count(&self, outcome: Outcome) -> usize {
        let rows = self.rows.iter();
        rows.filter(|row| row.outcome == outcome).count()
    }

    /// The lines that need attention.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let rows = self.rows.iter();
        rows.filter(|row| row.outcome >= Outcome::Noted).map(|row| {
            let (at, option, outcome, note) =
                (&row.at, &row.option, row.outcome.words(), &row.note);
            format!("{at}: {option} {outcome}: {note}")
        })
    }

    /// Counts and rows as JSON.
    pub fn json(&self) -> Json {
        let counts =
            Outcome::ALL.map(|outcome| (outcome.name().to_owned(), self.count(outcome).into()));
        let rows = self.rows.iter().map(|row| {
            json!({
                "outcome": row.outcome.name(),
                "file": row.at.path,
                "line": row.at.line,
                "option": row.option,
                "keys": row.keys.split(", ").filter(|key| !key.is_empty()).collect::<Vec<_>>(),
                "note": row.note,
            })
        });
        json!({
            "counts": counts.into_iter().collect::<serde_json::Map<_, _>>(),
            "options": rows.collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |text: fn(&Row) -> String| {
            let widths = self.rows.iter().map(|row| text(row).chars().count());
            widths.max().unwrap_or(0)
        };
        let places = width(|row| row.at.to_string());
        let options = width(|row| row.option.clone());
        for outcome in Outcome::ALL {
            let count = self.count(outcome);
            if count == 0 {
                continue;
            }
            writeln!(formatter, "{}: {count}", outcome.words())?;
            for row in self.rows.iter().filter(|row| row.outcome == outcome) {
                let (at, option, keys) = (row.at.to_string(), &row.option, &row.keys);
                let line = format!("  {at:<places$}  {option:<options$}  {keys}");
                let note = match row.note.as_str() {
                    "" => String::new(),
                    note => format!("      {note}\n"),
                };
                write!(formatter, "{}\n{note}", line.trim_end())?;
            }
        }
        Ok(())
    }
}
