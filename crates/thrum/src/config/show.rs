//! A configuration as text: all of it with its origins, or what differs from another.

use std::fmt::Write as _;

use super::Config;
use toml_edit::{Item, TableLike, Value};

use super::schema::{self, Key, Kind};
use super::{Loaded, Origin};

/// Keys that an overview of origins is padded to.
const ORIGIN_COLUMN: usize = 44;

/// Every key and value in the form of a file, except secrets; with `origin`, the origin of each.
pub(crate) fn listing(loaded: &Loaded, origin: bool) -> String {
    let mut text = String::new();
    let mut section = String::new();
    for (path, value) in shown(&loaded.config) {
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
    for (path, value) in shown(&loaded.config) {
        let default = defaults
            .iter()
            .find(|(key, _)| *key == path)
            .map(|(_, default)| default);
        // A table of the user's own choice has no defaults to differ from.
        let is_unset = default.is_none() && *loaded.origin(&path) == Origin::Default;
        if is_unset || default == Some(&value) {
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

/// Keys whose values differ between two configurations; of a table of the user's own choice that
/// only one of them has, its name.
pub(crate) fn changed_keys(before: &Config, after: &Config) -> Vec<String> {
    let keys = schema::keys();
    let (before, after) = (values(before), values(after));
    let one_way = |these: &[(String, String)], others: &[(String, String)]| -> Vec<String> {
        let differs = these.iter().filter(|entry| !others.contains(entry));
        let name = |(key, _): &(String, String)| {
            let table = named_table(&keys, key)?;
            let is_there = others.iter().any(|(other, _)| other.starts_with(&table));
            (!is_there).then(|| table.trim_end_matches('.').to_owned())
        };
        differs
            .map(|entry| name(entry).unwrap_or_else(|| entry.0.clone()))
            .collect()
    };
    let mut changed = one_way(&after, &before);
    changed.extend(one_way(&before, &after));
    changed.sort();
    changed.dedup();
    changed
}

/// The table of the user's own choice that a key is in, with a dot at its end.
fn named_table(keys: &Key, key: &str) -> Option<String> {
    let mut here = keys;
    let mut path = String::new();
    for name in key.split('.') {
        let is_named = matches!(here.kind, Kind::Named(_));
        path.push_str(name);
        path.push('.');
        if is_named {
            return Some(path);
        }
        here = here.child(name)?;
    }
    None
}

/// Dotted keys and their values as TOML, in the order of their definition.
pub(crate) fn values(config: &Config) -> Vec<(String, String)> {
    let texts = |(path, value): (String, Value)| (path, written(&value));
    collected(config).into_iter().map(texts).collect()
}

/// The same as text, without secrets.
fn shown(config: &Config) -> Vec<(String, String)> {
    let keys = schema::keys();
    let texts = |(path, value): (String, Value)| {
        let value = written(&keys.shown(&path, &value));
        (path, value)
    };
    collected(config).into_iter().map(texts).collect()
}

/// Dotted keys and their values, in the order of their definition.
pub(crate) fn collected(config: &Config) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    collect(schema::document(config).as_table(), "", &mut found);
    found
}

fn collect(table: &dyn TableLike, prefix: &str, found: &mut Vec<(String, Value)>) {
    for (name, item) in table.iter() {
        let path = if prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{prefix}.{name}")
        };
        match (item.as_table_like(), item) {
            (Some(child), _) => collect(child, &path, found),
            (None, Item::Value(value)) => found.push((path, value.clone())),
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
