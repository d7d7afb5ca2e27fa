//! One source of settings, as values with their origins.

use std::path::PathBuf;
use std::sync::Arc;

use thrum_settings::nearest;
use thrum_settings::problem::{Place, Problem, Source, unknown_key};
use toml_edit::{Document, InlineTable, Item, TableLike, Value};

use super::schema::{Key, Kind, Leaf};
use super::{LISTENERS, is_default_listener};

/// Prefix of the variables that set keys.
const PREFIX: &str = "THRUM_";

/// The variable that sets the log level of all Rust programs.
pub(super) const SHARED_LOG_VARIABLE: &str = "RUST_LOG";

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The default.
    Default,
    /// The file of the management interface, and the line in it.
    Managed(PathBuf, usize),
    /// A file, and the line in it.
    File(PathBuf, usize),
    /// A file of mosquitto, which does so without a line.
    Mosquitto(PathBuf),
    /// A variable of the environment.
    Env(String),
    /// A flag of the command line.
    Flag(&'static str),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::Managed(path, line) => write!(formatter, "managed {}:{line}", path.display()),
            Self::File(path, line) => write!(formatter, "{}:{line}", path.display()),
            Self::Mosquitto(path) => write!(formatter, "{}, as mosquitto", path.display()),
            Self::Env(name) => write!(formatter, "env {name}"),
            Self::Flag(name) => write!(formatter, "flag {name}"),
        }
    }
}

/// A key that a source sets.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The key, name by name.
    pub(crate) path: Vec<String>,
    /// Its value.
    pub(crate) value: Value,
    /// The origin of the value.
    pub(crate) origin: Origin,
    /// The value's place, if it is in a file.
    pub(crate) place: Option<Place>,
}

impl Origin {
    /// The kind of source: `default`, `managed`, `file`, `env` or `flag`.
    #[cfg(feature = "management")]
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Managed(..) => "managed",
            Self::File(..) | Self::Mosquitto(_) => "file",
            Self::Env(_) => "env",
            Self::Flag(_) => "flag",
        }
    }

    /// Whether it overrides what the management interface sets.
    pub(crate) const fn is_pinned(&self) -> bool {
        match self {
            Self::Default | Self::Managed(..) => false,
            Self::File(..) | Self::Mosquitto(_) | Self::Env(_) | Self::Flag(_) => true,
        }
    }
}

impl Setting {
    /// Whether the origin is a variable that other programs use too.
    pub(crate) fn is_shared_variable(&self) -> bool {
        matches!(&self.origin, Origin::Env(name) if name == SHARED_LOG_VARIABLE)
    }
}

/// Reads settings against the tree of keys and collects what is wrong with them.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    /// The known keys.
    pub(crate) keys: &'a Key,
    /// The contents of the layers, in their order.
    pub(crate) settings: Vec<Setting>,
    /// Their errors.
    pub(crate) problems: Vec<Problem>,
    /// Listeners that have a table, be it empty.
    pub(crate) listeners: Vec<String>,
}

impl<'k> Reader<'k> {
    /// Has read nothing.
    pub(crate) const fn new(keys: &'k Key) -> Self {
        Self {
            keys,
            settings: Vec::new(),
            problems: Vec::new(),
            listeners: Vec::new(),
        }
    }
}

impl Reader<'_> {
    /// Reads a file.
    pub(crate) fn file(&mut self, source: &Arc<Source>) {
        self.source(source, Origin::File);
    }

    /// Reads the file of the management interface.
    pub(crate) fn managed_file(&mut self, source: &Arc<Source>) {
        self.source(source, Origin::Managed);
    }

    fn source(&mut self, source: &Arc<Source>, origin: fn(PathBuf, usize) -> Origin) {
        match Document::parse(source.text.as_str()) {
            Ok(document) => {
                let keys = self.keys;
                FileReader {
                    reader: self,
                    source,
                    origin,
                }
                .table(keys, &mut Vec::new(), document.as_table());
            }
            Err(error) => {
                let place = Place::new(source, error.span().unwrap_or(0..0)).without_value();
                let message = error.message().replace('\n', ", ");
                self.report(Some(place), String::new(), message);
            }
        }
    }

    /// Reads a variable, if its name is that of a key: `THRUM_LIMITS__MAX_PACKET` is
    /// `limits.max_packet`. Names without `__` belong to other programs (`THRUM_SERVICE_HOST` of an
    /// orchestrator).
    pub(crate) fn variable(&mut self, name: &str, text: &str) {
        let path: Vec<String> = match name.strip_prefix(PREFIX) {
            Some(key) if key.contains("__") => {
                key.split("__").map(str::to_ascii_lowercase).collect()
            }
            _ if name == SHARED_LOG_VARIABLE => vec!["log".to_owned(), "level".to_owned()],
            _ => return,
        };
        self.text(path, text, Origin::Env(name.to_owned()));
    }

    /// Takes a value as the user wrote it outside a file: as TOML if the key takes that, else as
    /// plain text.
    pub(crate) fn text(&mut self, path: Vec<String>, text: &str, origin: Origin) {
        let Some(key) = self.keys.at(&path) else {
            let message = self.unknown_variable(&path);
            return self.report(None, origin.to_string(), message);
        };
        let Kind::Value(leaf) = &key.kind else {
            let message = "is a table of keys, not a value".to_owned();
            return self.report(None, origin.to_string(), message);
        };
        let parsed = text
            .parse()
            .ok()
            .filter(|value| leaf.check(&path, value).is_ok());
        let value = parsed.unwrap_or_else(|| Value::from(text));
        match leaf.check(&path, &value) {
            Ok(()) => self.settings.push(Setting {
                path,
                value,
                origin,
                place: None,
            }),
            Err(message) => self.report(None, origin.to_string(), message),
        }
    }

    fn unknown_key(&self, parent: &Key, path: &[String]) -> String {
        let [above @ .., name] = path else {
            return String::new();
        };
        if matches!(parent.kind, Kind::Named(_)) {
            return format!("name {name:?}: use the letters a-z, 0-9, _ and - only");
        }
        let known: Vec<&str> = parent.names().collect();
        unknown_key(name, &above.join("."), &known, || {
            let mut elsewhere = Vec::new();
            self.keys.find(name, "", &mut elsewhere);
            elsewhere.pop()
        })
    }

    fn unknown_variable(&self, path: &[String]) -> String {
        let mut corrected: Vec<String> = Vec::new();
        let mut keys = self.keys;
        for name in path {
            let known = match keys.child(name) {
                Some(_) => Some(name.as_str()),
                None => nearest(name, keys.names()),
            };
            let Some((known, child)) = known.and_then(|name| Some((name, keys.child(name)?)))
            else {
                return "no such key".to_owned();
            };
            corrected.push(known.to_ascii_uppercase());
            keys = child;
        }
        format!(
            "no such key, did you mean {PREFIX}{}?",
            corrected.join("__")
        )
    }

    fn report(&mut self, place: Option<Place>, origin: String, message: String) {
        self.problems.push(Problem {
            place,
            origin,
            message,
        });
    }
}

/// Reads one file.
#[derive(Debug)]
struct FileReader<'r, 'k> {
    reader: &'r mut Reader<'k>,
    source: &'r Arc<Source>,
    /// The origin of a value on a line.
    origin: fn(PathBuf, usize) -> Origin,
}

impl FileReader<'_, '_> {
    fn table(&mut self, keys: &Key, path: &mut Vec<String>, table: &dyn TableLike) {
        for (name, item) in table.iter() {
            let span = table
                .key(name)
                .and_then(toml_edit::Key::span)
                .or_else(|| item.span());
            let place = Place::new(self.source, span.unwrap_or(0..0));
            path.push(name.to_owned());
            match (keys.child(name), item.as_table_like()) {
                (None, _) => {
                    let message = self.reader.unknown_key(keys, path);
                    self.report(place, message);
                }
                (
                    Some(Key {
                        kind: Kind::Value(leaf),
                        ..
                    }),
                    _,
                ) => self.value(leaf, path, item, place),
                (Some(key), Some(child)) if matches!(keys.kind, Kind::Named(_)) => {
                    self.named_table(key, path, child, place);
                }
                (Some(key), Some(child)) => self.table(key, path, child),
                (Some(_), None) => {
                    self.report(place, format!("{}: expected a table", path.join(".")));
                }
            }
            path.pop();
        }
    }

    /// A table with a name of the user's choice.
    fn named_table(
        &mut self,
        keys: &Key,
        path: &mut Vec<String>,
        table: &dyn TableLike,
        place: Place,
    ) {
        if let [section, name] = path.as_slice()
            && section == LISTENERS
        {
            self.reader.listeners.push(name.clone());
            if table.is_empty() && !is_default_listener(name) {
                let name = path.join(".");
                self.report(place, format!("{name} has no address, set {name}.bind"));
            }
        } else if table.is_empty() {
            self.report(place, format!("{} sets no key", path.join(".")));
        }
        self.table(keys, path, table);
    }

    fn value(&mut self, leaf: &Leaf, path: &[String], item: &Item, key: Place) {
        let value = item
            .as_value()
            .cloned()
            .unwrap_or_else(|| InlineTable::new().into());
        let place = item
            .span()
            .map_or(key, |span| Place::new(self.source, span));
        match leaf.check(path, &value) {
            Ok(()) => {
                let origin = match place.written_at() {
                    (file, Some(line)) => (self.origin)(file.clone(), line),
                    (file, None) => Origin::Mosquitto(file.clone()),
                };
                let path = path.to_vec();
                self.reader.settings.push(Setting {
                    path,
                    value,
                    origin,
                    place: Some(place),
                });
            }
            Err(message) if leaf.is_secret() => {
                // Without the line itself.
                let (file, line) = place.written_at();
                let at = line.map_or_else(String::new, |line| format!(":{line}"));
                let at = format!("{}{at}", file.display());
                let message = format!("{}: {message}", path.join("."));
                self.reader.report(None, at, message);
            }
            Err(message) => self.report(place, format!("{}: {message}", path.join("."))),
        }
    }

    fn report(&mut self, place: Place, message: String) {
        self.reader.report(Some(place), String::new(), message);
    }
}
