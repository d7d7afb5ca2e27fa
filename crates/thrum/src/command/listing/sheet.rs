//! Columns and cells, and the forms of a list.

use std::fmt::Write as _;

use serde_json::Value;
use thrum_figures::{bytes, fraction};
use thrum_storage::WallMillis;

use super::row::{at, plain};
use super::{ListForm, Listing, Row};
use crate::command::shown::{NOTHING, json_line, json_text, name, table};

/// A column of a list.
#[derive(Debug)]
pub(in crate::command) struct Column {
    /// Key of its value; `a.b` is `b` in the object `a`.
    pub(in crate::command) key: &'static str,
    pub(in crate::command) heading: &'static str,
    pub(in crate::command) cell: Cell,
    /// It is only in the wide table.
    pub(in crate::command) is_wide: bool,
}

/// How a value is shown in a table.
#[derive(Debug)]
pub(in crate::command) enum Cell {
    /// As it is; texts are shortened to so many characters, 0 for no limit.
    Text(usize),
    /// A count in at most six characters.
    Count,
    /// A size.
    Bytes,
    /// A duration in seconds.
    Seconds,
    /// As a function of the whole row shows it.
    Own(fn(&Value, WallMillis) -> String),
}

impl Column {
    /// A column of the short table.
    pub(in crate::command) const fn new(
        key: &'static str,
        heading: &'static str,
        cell: Cell,
    ) -> Self {
        Self {
            key,
            heading,
            cell,
            is_wide: false,
        }
    }

    /// A column of the wide table only.
    pub(in crate::command) const fn wide(
        key: &'static str,
        heading: &'static str,
        cell: Cell,
    ) -> Self {
        Self {
            is_wide: true,
            ..Self::new(key, heading, cell)
        }
    }
}

/// A column that is shown.
pub(super) struct Shown {
    key: String,
    heading: String,
    column: Option<&'static Column>,
}

/// The columns of a form, or those that were asked for.
pub(super) fn chosen(listing: &Listing, keys: &[String], form: ListForm) -> Vec<Shown> {
    let find = |key: &str| listing.columns.iter().find(|one| one.key == key);
    if !keys.is_empty() {
        let keys = keys.iter().map(|given| listing.key(given));
        return keys
            .map(|key| {
                let column = find(&key);
                let heading = column.map_or_else(
                    || key.replace(['_', '.'], " ").to_uppercase(),
                    |column| column.heading.to_owned(),
                );
                Shown {
                    key,
                    heading,
                    column,
                }
            })
            .collect();
    }
    let is_shown = |column: &&Column| match form {
        ListForm::Table => !column.is_wide,
        // These pass whole rows on.
        ListForm::Json | ListForm::Jsonl | ListForm::Yaml => false,
        ListForm::Wide | ListForm::Csv => true,
    };
    let columns = listing.columns.iter().filter(is_shown);
    columns
        .map(|column| Shown {
            key: column.key.to_owned(),
            heading: column.heading.to_owned(),
            column: Some(column),
        })
        .collect()
}

/// The rows in a form; JSON and YAML have whole rows if no columns are given.
pub(super) fn text(
    columns: &[Shown],
    rows: &[Row],
    form: ListForm,
    now: WallMillis,
) -> serde_json::Result<String> {
    match form {
        ListForm::Table | ListForm::Wide => Ok(as_table(columns, rows, form, now)),
        ListForm::Json | ListForm::Jsonl => as_json(columns, rows),
        ListForm::Csv => Ok(as_csv(columns, rows)),
        ListForm::Yaml => as_yaml(columns, rows),
    }
}

fn as_table(columns: &[Shown], rows: &[Row], form: ListForm, now: WallMillis) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let headings: Vec<&str> = columns.iter().map(|column| &*column.heading).collect();
    let cells = rows.iter().map(|row| {
        let row = row.value();
        let cells = columns.iter().map(|column| column.cell(&row, form, now));
        cells.collect::<Vec<String>>()
    });
    table(&headings, &cells.collect::<Vec<_>>())
}

impl Shown {
    fn cell(&self, row: &Value, form: ListForm, now: WallMillis) -> String {
        let value = at(row, &self.key).unwrap_or(&Value::Null);
        let cell = self.column.map_or(&Cell::Text(0), |column| &column.cell);
        if let Cell::Own(show) = cell {
            return name(&show(row, now)).into_owned();
        }
        let text = match (cell, value.as_u64()) {
            (Cell::Count, Some(count)) => short_count(count),
            (Cell::Bytes, Some(count)) => bytes(fraction(count)),
            (Cell::Seconds, Some(secs)) => span(secs),
            _ => plain(value),
        };
        let text = name(&text).into_owned();
        match cell {
            _ if text.is_empty() => NOTHING.to_owned(),
            Cell::Text(width @ 1..) if form == ListForm::Table => cut(&text, *width),
            _ => text,
        }
    }
}

fn as_json(columns: &[Shown], rows: &[Row]) -> serde_json::Result<String> {
    let mut text = String::new();
    for row in rows {
        if columns.is_empty() {
            text.push_str(&json_text(row.text().to_owned()));
        } else {
            text.push_str(&chosen_members(columns, row)?);
        }
        text.push('\n');
    }
    Ok(text)
}

/// An object with these keys, in their order.
fn chosen_members(columns: &[Shown], row: &Row) -> serde_json::Result<String> {
    let row = row.value();
    let mut text = String::from("{");
    for (place, column) in columns.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        let value = at(&row, &column.key).unwrap_or(&Value::Null);
        let key = json_line(&column.key)?;
        text.extend([&*key, ":", &json_line(value)?]);
    }
    text.push('}');
    Ok(text)
}

fn as_csv(columns: &[Shown], rows: &[Row]) -> String {
    let mut text = String::new();
    let mut line = |values: &[String]| {
        let quoted: Vec<String> = values.iter().map(|value| csv_value(value)).collect();
        text.push_str(&quoted.join(","));
        text.push('\n');
    };
    let keys: Vec<String> = columns.iter().map(|column| column.key.clone()).collect();
    line(&keys);
    for row in rows {
        let row = row.value();
        let values = columns.iter().map(|column| {
            let value = at(&row, &column.key).unwrap_or(&Value::Null);
            name(&plain(value)).into_owned()
        });
        line(&values.collect::<Vec<_>>());
    }
    text
}

/// As RFC 4180 has it.
fn csv_value(value: &str) -> String {
    if value.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value.to_owned()
    }
}

/// A list of mappings; inner values are JSON, which is YAML too.
fn as_yaml(columns: &[Shown], rows: &[Row]) -> serde_json::Result<String> {
    if rows.is_empty() {
        return Ok("[]\n".to_owned());
    }
    let mut text = String::new();
    for row in rows {
        let row = row.value();
        let members: Vec<(String, Value)> = if columns.is_empty() {
            let members = row.as_object().cloned().unwrap_or_default();
            members.into_iter().collect()
        } else {
            let value = |key: &str| at(&row, key).cloned().unwrap_or(Value::Null);
            let columns = columns.iter();
            columns
                .map(|column| (column.key.clone(), value(&column.key)))
                .collect()
        };
        for (place, (key, value)) in members.iter().enumerate() {
            let before = if place == 0 { "- " } else { "  " };
            let value = json_line(value)?;
            // A string takes everything.
            writeln!(text, "{before}{key}: {value}").unwrap_or_default();
        }
    }
    Ok(text)
}

/// At most that many characters of a text; `…` stands for the rest.
pub(in crate::command) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    kept.chain(['…']).collect()
}

/// A count in at most six characters: `9999`, `12.3k`, `4.5M`.
pub(in crate::command) fn short_count(count: u64) -> String {
    const UNITS: [(u64, &str); 6] = [
        (1_000_000_000_000_000_000, "E"),
        (1_000_000_000_000_000, "P"),
        (1_000_000_000_000, "T"),
        (1_000_000_000, "G"),
        (1_000_000, "M"),
        (1000, "k"),
    ];
    if count < 10_000 {
        return count.to_string();
    }
    let unit = UNITS.iter().find(|(unit, _)| count >= *unit);
    let (unit, letter) = unit.unwrap_or(&(1, ""));
    format!(
        "{}.{}{letter}",
        count / unit,
        u128::from(count % unit) * 10 / u128::from(*unit)
    )
}

/// A time in its largest unit: `3d`, `2h`, `5m`, `9s`.
pub(in crate::command) fn span(secs: u64) -> String {
    let units = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let unit = units.iter().find(|(unit, _)| secs >= *unit);
    let (unit, letter) = unit.unwrap_or(&(1, "s"));
    format!("{}{letter}", secs / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_counts_fit_their_columns() {
        assert_eq!(cut("\u{fc}ber", 4), "\u{fc}ber");
        assert_eq!(cut("\u{fc}ber", 3), "\u{fc}b…");
        for (count, expected) in [
            (0, "0"),
            (9999, "9999"),
            (10_000, "10.0k"),
            (999_999, "999.9k"),
            (1_250_000, "1.2M"),
            (u64::MAX, "18.4E"),
        ] {
            assert_eq!(short_count(count), expected);
        }
        assert_eq!((span(0), span(7200)), ("0s".to_owned(), "2h".to_owned()));
    }
}
