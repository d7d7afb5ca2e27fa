//! Which listener, plugin or bridge each line belongs to: the one above it in the same file.

use thrum_settings::nearest;
use thrum_settings::problem::Problem;

use super::files::Part;
use super::options::{self, Entry, Scope};
use super::syntax::Statement;
use super::value::{Value, flag};

/// An option with its value.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// Its kind.
    pub(super) entry: &'static Entry,
    /// Its line.
    pub(super) statement: Statement,
    /// Its value.
    pub(super) value: Value,
}

/// A whole configuration, each line in its place.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    /// `per_listener_settings` is true.
    pub(super) is_per_listener: bool,
    /// A line makes a listener, so mosquitto does not stay on this machine.
    pub(super) has_listener: bool,
    /// Of the broker as a whole.
    pub(super) general: Vec<Setting>,
    /// Of each listener; the default one comes first and has no line of its own.
    pub(super) listeners: Vec<ListenerLines>,
    /// Plugins.
    pub(super) plugins: Vec<PluginLines>,
    /// Bridges, each with all of its lines.
    pub(super) bridges: Vec<Vec<Setting>>,
    /// Unknown options, and suggestions.
    pub(super) unknown: Vec<(Statement, Option<&'static str>)>,
}

/// Lines of a listener.
#[derive(Debug)]
pub(super) struct ListenerLines {
    /// The `listener` line; none for the default listener.
    pub(super) start: Option<Setting>,
    /// Its settings.
    pub(super) settings: Vec<Setting>,
}

/// Lines of a plugin.
#[derive(Debug)]
pub(super) struct PluginLines {
    /// The line that loads it.
    pub(super) start: Setting,
    /// Its options.
    pub(super) options: Vec<Setting>,
    /// The listeners it is for, as positions in `listeners`.
    pub(super) users: Users,
}

/// The users of a plugin.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Users {
    /// All listeners.
    All,
    /// These.
    Listeners(Vec<usize>),
}

/// The listener that options without one belong to.
const DEFAULT: usize = 0;

/// The scope of the next line; each file starts over.
#[derive(Clone, Copy, Debug, Default)]
struct Current {
    listener: usize,
    plugin: Option<usize>,
    bridge: Option<usize>,
}

/// Puts every line in its place.
pub(super) fn arrange(parts: Vec<Part>, problems: &mut Vec<Problem>) -> Configuration {
    let mut arranging = Arranging {
        found: Configuration {
            listeners: vec![ListenerLines {
                start: None,
                settings: Vec::new(),
            }],
            ..Configuration::default()
        },
        has_security: false,
        problems,
    };
    let mut main = Current::default();
    for part in parts {
        let mut own = Current::default();
        let current = if part.is_included {
            &mut own
        } else {
            &mut main
        };
        for statement in part.statements {
            arranging.take(statement, current);
        }
    }
    arranging.found
}

struct Arranging<'a> {
    found: Configuration,
    has_security: bool,
    problems: &'a mut Vec<Problem>,
}

impl Arranging<'_> {
    fn take(&mut self, statement: Statement, current: &mut Current) {
        let Some(entry) = options::find(&statement.name) else {
            return self.unknown(statement);
        };
        match entry.form.read(&statement) {
            Ok(value) => {
                let setting = Setting {
                    entry,
                    statement,
                    value,
                };
                if let Err(message) = self.place(setting.clone(), current) {
                    self.problems.push(setting.statement.wrong_name(message));
                }
            }
            Err(message) => self.problems.push(statement.wrong_value(message)),
        }
    }

    /// A name that no version has is kept for the report; one that cannot be a name is a typing
    /// error.
    fn unknown(&mut self, statement: Statement) {
        if statement.name.starts_with('#') {
            let message = "a comment begins in the first column: remove the spaces before the #";
            return self.problems.push(statement.wrong_name(message.to_owned()));
        }
        if let Some((name, _)) = statement.name.split_once('\t') {
            let message = format!("a space, not a tab, separates {name} from its value");
            return self.problems.push(statement.wrong_name(message));
        }
        let meant = nearest(&statement.name, options::all().map(|entry| entry.name));
        self.found.unknown.push((statement, meant));
    }

    fn place(&mut self, setting: Setting, current: &mut Current) -> Result<(), String> {
        let name = &setting.statement.name;
        match setting.entry.scope {
            Scope::General => self.general(setting)?,
            Scope::Security => {
                self.has_security = true;
                if self.found.is_per_listener {
                    self.found.listeners[current.listener]
                        .settings
                        .push(setting);
                } else {
                    self.found.general.push(setting);
                }
            }
            Scope::Listener => self.listener(setting, current),
            Scope::DefaultListener => {
                self.found.has_listener = true;
                self.found.listeners[DEFAULT].settings.push(setting);
            }
            Scope::NewListener => {
                self.found.has_listener = true;
                current.listener = self.found.listeners.len();
                self.found.listeners.push(ListenerLines {
                    start: Some(setting),
                    settings: Vec::new(),
                });
            }
            Scope::NewPlugin => self.plugin(setting, current),
            Scope::Plugin => {
                let plugin = current.plugin.and_then(|at| self.found.plugins.get_mut(at));
                let missing = || format!("{name} belongs to a plugin: put it below a plugin line");
                plugin.ok_or_else(missing)?.options.push(setting);
            }
            Scope::NewBridge => {
                current.bridge = Some(self.found.bridges.len());
                self.found.bridges.push(vec![setting]);
            }
            Scope::Bridge => {
                let bridge = current.bridge.and_then(|at| self.found.bridges.get_mut(at));
                let missing =
                    || format!("{name} belongs to a bridge: put it below a connection line");
                bridge.ok_or_else(missing)?.push(setting);
            }
        }
        Ok(())
    }

    fn general(&mut self, setting: Setting) -> Result<(), String> {
        if setting.entry.name == "per_listener_settings" {
            self.found.is_per_listener = flag(setting.statement.word()) == Some(true);
            if self.found.is_per_listener && self.has_security {
                return Err(
                    "per_listener_settings must precede all security options: move it to the top"
                        .to_owned(),
                );
            }
        }
        self.found.general.push(setting);
        Ok(())
    }

    fn listener(&mut self, setting: Setting, current: &Current) {
        if setting.entry.name == "plugin_use" {
            let is_it = |plugin: &&mut PluginLines| {
                plugin.start.entry.name == "plugin_load"
                    && plugin.start.statement.word() == setting.statement.value
            };
            if let Some(PluginLines {
                users: Users::Listeners(users),
                ..
            }) = self.found.plugins.iter_mut().find(is_it)
            {
                users.push(current.listener);
            }
        }
        self.found.listeners[current.listener]
            .settings
            .push(setting);
    }

    fn plugin(&mut self, setting: Setting, current: &mut Current) {
        let users = match setting.entry.name {
            "plugin_load" => Users::Listeners(Vec::new()),
            "global_plugin" => Users::All,
            _ if self.found.is_per_listener => Users::Listeners(vec![current.listener]),
            _ => Users::All,
        };
        self.has_security = true;
        current.plugin = Some(self.found.plugins.len());
        self.found.plugins.push(PluginLines {
            start: setting,
            options: Vec::new(),
            users,
        });
    }
}
