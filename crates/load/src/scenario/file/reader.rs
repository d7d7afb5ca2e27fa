//! Takes a TOML document apart, key by key, and collects what is wrong with it.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use thrum_settings::problem::{Place, Problem, Problems, Source, unknown_key};
use toml_edit::{Item, Key, TableLike, Value};

use super::locate::{is_at, span_of};

/// Most problems that one error lists.
const PROBLEMS_MAX: usize = 20;

/// Reads one document.
pub(super) struct Reader<'a> {
    source: Arc<Source>,
    root: &'a Item,
    problems: Vec<Problem>,
}

/// A table of the document and its path: `groups.pub.publish`; empty for the document itself.
#[derive(Clone)]
pub(super) struct Section<'a> {
    table: &'a dyn TableLike,
    path: String,
}

impl<'a> Section<'a> {
    /// The path of one of its keys.
    pub(super) fn path_of(&self, key: &str) -> String {
        joined(&self.path, key)
    }

    /// Its path.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Whether it has a key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The value of a key.
    pub(super) fn item(&self, key: &str) -> Option<&'a Item> {
        self.table.get(key)
    }

    /// Its keys in the order of the file.
    pub(super) fn keys(&self) -> Vec<&'a str> {
        self.table.iter().map(|(key, _)| key).collect()
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(origin: &str, text: &str, root: &'a Item) -> Self {
        Self {
            source: source(origin, text),
            root,
            problems: Vec::new(),
        }
    }

    /// The document as a table of these keys.
    pub(super) fn document(&mut self, keys: &[&str]) -> Option<Section<'a>> {
        let section = Section {
            table: self.root.as_table_like()?,
            path: String::new(),
        };
        self.check_keys(&section, keys);
        Some(section)
    }

    /// A table under a key, which may have these keys only.
    pub(super) fn table<'s>(
        &mut self,
        parent: &Section<'s>,
        key: &str,
        keys: &[&str],
    ) -> Option<Section<'s>> {
        let section = self.open_table(parent, key)?;
        self.check_keys(&section, keys);
        Some(section)
    }

    /// A table under a key, whose keys are names that the author chose.
    pub(super) fn open_table<'s>(
        &mut self,
        parent: &Section<'s>,
        key: &str,
    ) -> Option<Section<'s>> {
        let item = parent.item(key)?;
        let path = parent.path_of(key);
        let Some(table) = item.as_table_like() else {
            self.blame(&path, &format!("expected a table, found {}", found(item)));
            return None;
        };
        Some(Section { table, path })
    }

    /// The tables of a list, written as `[[key]]` or as a list of `{ … }`.
    pub(super) fn tables<'s>(&mut self, parent: &Section<'s>, key: &str) -> Vec<Section<'s>> {
        let Some(item) = parent.item(key) else {
            return Vec::new();
        };
        let path = parent.path_of(key);
        let tables: Vec<Option<&dyn TableLike>> = match item {
            Item::ArrayOfTables(list) => list.iter().map(|table| Some(table as _)).collect(),
            Item::Value(Value::Array(list)) => list
                .iter()
                .map(|value| value.as_inline_table().map(|table| table as _))
                .collect(),
            _ => vec![None],
        };
        let mut sections = Vec::with_capacity(tables.len());
        for (index, table) in tables.into_iter().enumerate() {
            match table {
                Some(table) => sections.push(Section {
                    table,
                    path: joined(&path, &index.to_string()),
                }),
                None => self.blame(&path, &format!("expected a list of tables: [[{key}]]")),
            }
        }
        sections
    }

    /// The value of a key, if it exists and is valid.
    pub(super) fn value<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Option<T> {
        let value = section.item(key)?.clone().into_value();
        let read = value
            .map_err(|_| "expected a value".to_owned())
            .and_then(|value| read(&value));
        match read {
            Ok(value) => Some(value),
            Err(message) => {
                self.blame(&section.path_of(key), &message);
                None
            }
        }
    }

    /// The value of a key that must be there.
    pub(super) fn required<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Option<T> {
        if !section.has(key) {
            let message = format!("'{key}' is missing");
            self.blame(&section.path, &message);
        }
        self.value(section, key, read)
    }

    /// Says what is wrong with what is at a path, or with the nearest thing above it.
    pub(super) fn blame(&mut self, path: &str, message: &str) {
        let message = match path {
            "" => message.to_owned(),
            path => format!("{path}: {message}"),
        };
        let span = span_of(self.root, path);
        self.report(span, message);
    }

    /// Whether a path exists.
    pub(super) fn has(&self, path: &str) -> bool {
        is_at(self.root, path)
    }

    /// Whether nothing was wrong so far.
    pub(super) const fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// Reports keys that are not known here.
    pub(super) fn check_keys(&mut self, section: &Section<'_>, known: &[&str]) {
        for (name, item) in section.table.iter() {
            if known.contains(&name) {
                continue;
            }
            let message = unknown_key(name, &section.path, known, || None);
            let span = section.table.key(name).and_then(Key::span);
            self.report(span.or_else(|| item.span()), message);
        }
    }

    /// The outcome: the contents, or every error.
    pub(super) fn finish<T>(mut self, read: Option<T>) -> Result<T, Problems> {
        match read {
            Some(read) if self.problems.is_empty() => return Ok(read),
            None if self.problems.is_empty() => self.report(None, "no scenario in it".to_owned()),
            _ => {}
        }
        Err(Problems(self.problems))
    }

    /// Adds a problem.
    pub(super) fn report(&mut self, span: Option<Range<usize>>, message: String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem(&self.source, span, message));
        }
    }
}

/// The text of a file; `origin` is its name.
pub(super) fn source(origin: &str, text: &str) -> Arc<Source> {
    Arc::new(Source::new(PathBuf::from(origin), text.to_owned()))
}

/// A problem at a place, or of the whole file.
pub(super) fn problem(
    source: &Arc<Source>,
    span: Option<Range<usize>>,
    message: String,
) -> Problem {
    match span {
        Some(span) => Problem::at(Place::new(source, span), message),
        None => Problem::general(source.path.display().to_string(), message),
    }
}

/// The actual value, shortened.
pub(super) fn found(item: &Item) -> String {
    match item.as_value() {
        Some(value) => written(value),
        None => format!("a {}", item.type_name()),
    }
}

/// A value in its written form, shortened.
pub(super) fn written(value: &Value) -> String {
    const SHOWN_MAX: usize = 40;
    let text = value.clone().decorated("", "").to_string();
    if text.chars().count() <= SHOWN_MAX {
        return text;
    }
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    format!("{shown}…")
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}
