//! Plugins: those of mosquitto itself are recognized by the names of their files.

use super::super::draft::Draft;
use super::super::options;
use super::super::scope::{Configuration, ListenerLines, PluginLines, Setting, Users};

/// Functions of plugins that need a replacement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plugins {
    /// A plugin decides about permissions.
    pub(super) decide_access: bool,
    /// A plugin stores the state.
    pub(super) persist: bool,
    /// A plugin has users, which have to be moved to the built-in store.
    pub(super) have_users: bool,
}

/// Plugins that are an option in another form: the file's name, the option.
const OPTIONS: [(&str, &str); 2] = [
    ("mosquitto_password_file", "password_file"),
    ("mosquitto_acl_file", "acl_file"),
];

/// Puts what the known plugins do among the other settings.
pub(super) fn resolve(configuration: &mut Configuration, draft: &mut Draft) -> Plugins {
    let mut plugins = Plugins::default();
    for plugin in std::mem::take(&mut configuration.plugins) {
        let path = plugin.start.value.text().to_owned();
        let is = |name: &str| path.contains(name);
        if let Some((_, name)) = OPTIONS.iter().find(|(file, _)| is(file)) {
            as_option(&plugin, name, configuration, draft);
        } else if is("mosquitto_dynamic_security") {
            plugins.decide_access = true;
            plugins.have_users = true;
            dynamic_security(&plugin, draft);
        } else if is("mosquitto_persist_sqlite") {
            plugins.persist = true;
            persistence(&plugin, draft);
        } else {
            plugins.decide_access = true;
            other(&plugin, draft);
        }
    }
    plugins
}

/// `plugin_opt_password_file FILE` is `password_file FILE`.
fn as_option(
    plugin: &PluginLines,
    name: &'static str,
    configuration: &mut Configuration,
    draft: &mut Draft,
) {
    let Some(entry) = options::find(name) else {
        return;
    };
    draft.carried(&plugin.start, entry.fate.keys());
    uses(
        plugin,
        &mut configuration.listeners,
        entry.fate.keys(),
        draft,
    );
    for option in &plugin.options {
        if option.statement.name != format!("plugin_opt_{name}") {
            draft.by_entry(option);
            continue;
        }
        let setting = Setting {
            entry,
            ..option.clone()
        };
        match &plugin.users {
            Users::All => configuration.general.push(setting),
            Users::Listeners(users) => {
                for user in users {
                    add(&mut configuration.listeners, *user, setting.clone());
                }
            }
        }
    }
}

/// The `plugin_use` lines of a plugin that is replaced.
fn uses(plugin: &PluginLines, listeners: &mut [ListenerLines], keys: &str, draft: &mut Draft) {
    let name = plugin.start.statement.word();
    let is_use =
        |setting: &Setting| setting.entry.name == "plugin_use" && setting.statement.value == name;
    for listener in listeners {
        for setting in listener.settings.extract_if(.., |setting| is_use(setting)) {
            draft.carried(&setting, keys);
        }
    }
}

fn add(listeners: &mut [ListenerLines], user: usize, setting: Setting) {
    if let Some(listener) = listeners.get_mut(user) {
        listener.settings.push(setting);
    }
}

fn dynamic_security(plugin: &PluginLines, draft: &mut Draft) {
    draft.dropped(
        &plugin.start,
        "users, groups and roles are in a file of their own, made from that of the plugin",
    );
    for option in &plugin.options {
        let file = &option.statement.value;
        match option.statement.name.as_str() {
            "plugin_opt_config_file" => {
                let command = format!("thrum users import {file} --format mosquitto-dynsec");
                draft.dropped(option, format!("import its users: {command}"));
            }
            _ => draft.by_entry(option),
        }
    }
}

fn persistence(plugin: &PluginLines, draft: &mut Draft) {
    draft.noted(
        &plugin.start,
        "node.data_dir",
        "its database is not read; devices subscribe and publish retained messages again",
    );
    for option in &plugin.options {
        draft.dropped(option, "the data directory has files of its own");
    }
}

fn other(plugin: &PluginLines, draft: &mut Draft) {
    for setting in std::iter::once(&plugin.start).chain(&plugin.options) {
        draft.by_entry(setting);
    }
    let settings = std::iter::once(&plugin.start).chain(&plugin.options);
    draft.remark(
        "A plugin:".to_owned(),
        settings.map(|setting| &setting.statement),
    );
}
