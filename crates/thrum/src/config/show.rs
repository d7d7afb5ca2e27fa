//! A configuration as text: all of it with its origins, or what differs from another.

use std::fmt::Write as _;

use super::Config;
use toml_edit::{Item, TableLike, Value};

use super::Loaded;
use super::schema;

/// Keys that an overview of origins is padded to.
const ORIGIN_COLUMN: usize = 44;

/// Every key and value in the form of a file; with `origin`, who set each.
pub(crate) fn listing(loaded: &Loaded, origin: bool) -> String {
    let mut text = String::new();
    let mut section = String::new();
    for (path, value) in values(&loaded.config) {
        let (table, name) = path.rsplit_once('.').unwrap_or(("", &path));
        if table != section {
            let gap = if text.is_empty() { "" } else { "\n" };
            push_line(&mut text, &format!("{gap}[{table}]"));
            table.clone_into(&mut section);
        }
        let line = format!("{name} = {value}");
        if origin {
            let origin = loaded.origin(&path);
            push_line(&mut text, &format!("{line:<ORIGIN_COLUMN$} # {origin}"));
        } else {
            push_line(&mut text, &line);
        }
    }
    text
}

/// One line for each key that is not at its default.
pub(crate) fn differences(loaded: &Loaded) -> String {
    let defaults = values(&Config::default());
    let mut text = String::new();
    for (path, value) in values(&loaded.config) {
        let default = defaults
            .iter()
            .find(|(key, _)| *key == path)
            .map(|(_, default)| default);
        if default == Some(&value) {
            continue;
        }
        let was = default.map_or_else(String::new, |default| format!(" (default {default})"));
        push_line(
            &mut text,
            &format!("{path} = {value}{was}  # {}", loaded.origin(&path)),
        );
    }
    text
}

/// Keys whose values differ between two configurations.
pub(crate) fn changed_keys(before: &Config, after: &Config) -> Vec<String> {
    let (before, after) = (values(before), values(after));
    let lacks = |list: &[(String, String)], entry: &(String, String)| !list.contains(entry);
    let mut changed: Vec<String> = after
        .iter()
        .filter(|entry| lacks(&before, entry))
        .chain(before.iter().filter(|entry| lacks(&after, entry)))
        .map(|(key, _)| key.clone())
        .collect();
    changed.sort();
    changed.dedup();
    changed
}

/// Dotted keys and their values as TOML, in the order of their definition.
pub(crate) fn values(config: &Config) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect(schema::document(config).as_table(), "", &mut found);
    found
}

fn collect(table: &dyn TableLike, prefix: &str, found: &mut Vec<(String, String)>) {
    for (name, item) in table.iter() {
        let path = if prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{prefix}.{name}")
        };
        match (item.as_table_like(), item) {
            (Some(child), _) => collect(child, &path, found),
            (None, Item::Value(value)) => found.push((path, written(value))),
            (None, _) => {}
        }
    }
}

fn written(value: &Value) -> String {
    value.clone().decorated("", "").to_string()
}

pub(super) fn push_line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a String does not fail");
}
