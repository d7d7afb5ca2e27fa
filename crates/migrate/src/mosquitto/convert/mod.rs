//! From lines in their places to keys.

mod defaults;
mod general;
mod listener;
mod log;
mod plugin;
mod security;
mod tls;

use std::path::Path;

use thrum_settings::problem::Problem;

use super::draft::Draft;
use super::files::Files;
use super::scope::{Configuration, Setting};

/// Options that may be given more than once and add up.
const REPEATABLE: [&str; 5] = [
    "include_dir",
    "log_dest",
    "log_type",
    "plugin_use",
    "websockets_origin",
];
/// Names that mean the same option.
const SYNONYMS: [(&str, &str); 2] = [
    ("maximum_qos", "max_qos"),
    ("retained_persistence", "persistence"),
];

/// Makes a configuration of it.
pub(super) fn convert(
    mut configuration: Configuration,
    files: &dyn Files,
    problems: &mut Vec<Problem>,
) -> Draft {
    let mut draft = Draft::default();
    let plugins = plugin::resolve(&mut configuration, &mut draft);
    let all = std::mem::take(&mut configuration.general);
    configuration.general = the_last_of_each(all, &mut draft);
    for listener in &mut configuration.listeners {
        let all = std::mem::take(&mut listener.settings);
        listener.settings = the_last_of_each(all, &mut draft);
    }
    let listeners = listener::convert(&configuration, &mut draft, problems);
    security::convert(&configuration, &listeners, plugins, &mut draft);
    general::convert(&configuration.general, plugins, &mut draft);
    log::convert(&configuration.general, &mut draft);
    defaults::across_listeners(&listeners, &mut draft);
    defaults::convert(&configuration.general, &mut draft);
    bridges(&configuration, &mut draft);
    unknown(&configuration, &mut draft);
    missing_files(&configuration, files, &mut draft);
    draft
}

/// As mosquitto reads them: a line that is given again counts for those before it.
fn the_last_of_each(all: Vec<Setting>, draft: &mut Draft) -> Vec<Setting> {
    let mut kept: Vec<Setting> = Vec::with_capacity(all.len());
    for setting in all {
        let name = canonical(&setting);
        let before = kept.iter().position(|kept| canonical(kept) == name);
        if let Some(before) = before.filter(|_| !REPEATABLE.contains(&name)) {
            let replaced = kept.remove(before);
            let why = format!("{} repeats it and takes effect", setting.statement.at);
            draft.dropped(&replaced, why);
        }
        kept.push(setting);
    }
    kept
}

fn canonical(setting: &Setting) -> &'static str {
    let name = setting.entry.name;
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == name);
    synonym.map_or(name, |(_, name)| name)
}

/// The setting of that name.
fn find<'a>(settings: &'a [Setting], name: &str) -> Option<&'a Setting> {
    settings.iter().find(|setting| canonical(setting) == name)
}

/// The text of the setting of that name.
fn text<'a>(settings: &'a [Setting], name: &str) -> Option<&'a str> {
    find(settings, name).map(|setting| setting.value.text())
}

/// Whether the flag of that name is set.
fn is_true(settings: &[Setting], name: &str) -> bool {
    find(settings, name).is_some_and(|setting| setting.value.is_true())
}

fn bridges(configuration: &Configuration, draft: &mut Draft) {
    for bridge in &configuration.bridges {
        for setting in &bridge[..1] {
            let title = format!(
                "Bridge {}: bridges come with the connectors.",
                setting.statement.word()
            );
            draft.remark(title, bridge.iter().map(|setting| &setting.statement));
            let count = bridge.len();
            let why = format!(
                "bridges come with the connectors; until then its {count} lines are kept as comments"
            );
            draft.dropped(setting, why);
        }
    }
}

fn unknown(configuration: &Configuration, draft: &mut Draft) {
    let statements = || configuration.unknown.iter().map(|(statement, _)| statement);
    if configuration.unknown.is_empty() {
        return;
    }
    draft.remark("Unknown options:".to_owned(), statements());
    for (statement, meant) in &configuration.unknown {
        let hint = meant.map_or_else(
            || "neither mosquitto 2.0 nor 2.1 has it".to_owned(),
            |meant| format!("did you mean {meant}?"),
        );
        draft.unknown(statement, hint);
    }
}

/// Says which of the named files are not there.
fn missing_files(configuration: &Configuration, files: &dyn Files, draft: &mut Draft) {
    let named = [
        "acl_file",
        "cafile",
        "certfile",
        "crlfile",
        "keyfile",
        "password_file",
    ];
    let listeners = configuration.listeners.iter();
    let settings = listeners.flat_map(|listener| &listener.settings);
    for setting in configuration.general.iter().chain(settings) {
        let path = Path::new(setting.value.text());
        if !named.contains(&setting.entry.name) || !files.is_missing(path) {
            continue;
        }
        let comment = if setting.value.text().contains(" #") {
            " (a comment begins in the first column only)"
        } else {
            ""
        };
        draft.add_note(
            setting,
            &format!("there is no file {}{comment}", path.display()),
        );
    }
}
