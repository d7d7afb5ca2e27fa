//! The table of options and the code that converts them agree, for every option.

use super::options::{self, Fate, Scope};
use super::report::Outcome;
use super::testing::sample;
use super::*;

/// Whether a key is that of a pattern such as `listeners.NAME.bind`.
fn is_key(setting: &str, pattern: &str) -> bool {
    let key = setting.split(" = ").next().unwrap_or_default();
    let (parts, names) = (key.split('.'), pattern.split('.'));
    parts.clone().count() == names.clone().count()
        && parts
            .zip(names)
            .all(|(part, name)| name == "NAME" || part == name)
}

/// All keys with their tables, also those that every configuration has.
fn all_keys(toml: &str) -> Vec<String> {
    let mut table = String::new();
    let mut found = Vec::new();
    for line in toml.lines() {
        match line.strip_prefix('[') {
            Some(name) => table = name.trim_end_matches(']').to_owned(),
            None if line.contains(" = ") && !line.starts_with('#') => {
                found.push(format!("{table}.{line}"));
            }
            None => {}
        }
    }
    found
}

#[test]
fn every_option_that_is_carried_over_sets_its_key() {
    for entry in options::all() {
        let patterns = entry.fate.keys();
        if patterns.is_empty() {
            continue;
        }
        let (text, line) = sample(entry);
        let toml = imported(&text).toml;
        let set = all_keys(&toml);
        let mark = format!("# m.conf:{line}");
        let is_set = |setting: &String, pattern: &str| {
            is_key(setting, pattern)
                && (setting.ends_with(&mark) || entry.name == "per_listener_settings")
        };
        // These refine a key that another line names.
        let is_elsewhere = ["socket_domain", "persistence", "retained_persistence"];
        for pattern in patterns.split(", ") {
            let is_there = set.iter().any(|setting| is_set(setting, pattern))
                || is_elsewhere.contains(&entry.name)
                    && set.iter().any(|setting| is_key(setting, pattern));
            assert!(
                is_there,
                "{} sets no {pattern}:\n{text}\n{toml}",
                entry.name
            );
        }
    }
}

#[test]
fn every_option_that_is_not_carried_over_changes_nothing() {
    let leaves_out = ["bind_interface", "psk_hint", "tls_engine", "tls_keyform"];
    let decides = ["auth_plugin", "global_plugin", "plugin", "plugin_load"];
    for entry in options::all() {
        let is_without_key = matches!(entry.fate, Fate::Dropped { .. } | Fate::Anyway(_));
        if !is_without_key || leaves_out.contains(&entry.name) || decides.contains(&entry.name) {
            continue;
        }
        if entry.name == "include_dir" {
            continue;
        }
        let (text, line) = sample(entry);
        let others = text
            .lines()
            .enumerate()
            .filter(|(number, _)| number + 1 != line);
        let without = others.fold(String::new(), |kept, (_, line)| kept + line + "\n");
        assert_eq!(
            keys(&imported(&text).toml),
            keys(&imported(&without).toml),
            "{text}"
        );
    }
}

#[test]
fn every_line_is_in_the_report() {
    for entry in options::all().filter(|entry| entry.name != "include_dir") {
        let (text, line) = sample(entry);
        let report = imported(&text).report;
        let line = match entry.scope {
            // A bridge is reported as one.
            Scope::Bridge | Scope::NewBridge => 2,
            _ => line,
        };
        let rows: Vec<_> = report
            .rows
            .iter()
            .filter(|row| row.at.line == line)
            .collect();
        assert_eq!(rows.len(), 1, "{}\n{text}\n{report}", entry.name);
        let is_lost = matches!(entry.fate, Fate::Dropped { .. });
        let asks = !matches!(entry.name, "bind_interface" | "tls_keyform");
        let is_flag_off = matches!(entry.fate, Fate::Dropped { off: "true", .. });
        if is_lost && asks && !is_flag_off {
            assert_eq!(rows[0].outcome, Outcome::Dropped, "{text}\n{report}");
        }
    }
}
