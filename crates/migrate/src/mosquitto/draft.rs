//! The configuration in the making: keys with their source lines, and the report about those lines.

use thrum_settings::problem::At;
use toml_edit::Value as Toml;

use super::options::Fate;
use super::report::{Outcome, Report, Row};
use super::scope::Setting;
use super::syntax::Statement;

/// Tables in the order of the file; others follow.
const TABLES: [&str; 9] = [
    "node",
    "listeners",
    "auth",
    "acl",
    "storage",
    "limits",
    "limits.client",
    "sys",
    "log",
];
/// Widest setting that comments are aligned to.
const COMMENT_COLUMN_MAX: usize = 52;

/// Keys and rows.
#[derive(Debug, Default)]
pub(super) struct Draft {
    lines: Vec<Line>,
    remarks: Vec<Remark>,
    /// The result for each line.
    pub(super) report: Report,
}

/// A key.
#[derive(Debug)]
struct Line {
    table: String,
    setting: String,
    origin: Origin,
}

/// Lines that are kept as comments.
#[derive(Debug)]
struct Remark {
    title: String,
    lines: Vec<String>,
}

/// Why a key is set.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// A line asks for it.
    Line(At),
    /// Mosquitto does it without being asked.
    Default(&'static str),
}

impl From<&Setting> for Origin {
    fn from(setting: &Setting) -> Self {
        Self::Line(setting.statement.at.clone())
    }
}

impl Draft {
    /// Sets a key.
    pub(super) fn set(
        &mut self,
        table: impl Into<String>,
        key: &str,
        value: impl Into<Toml>,
        origin: impl Into<Origin>,
    ) {
        let value: Toml = value.into();
        self.lines.push(Line {
            table: table.into(),
            setting: format!("{key} = {}", value.decorated("", "")),
            origin: origin.into(),
        });
    }

    /// Keeps lines as comments at the end of the file.
    pub(super) fn remark<'a>(
        &mut self,
        title: String,
        statements: impl IntoIterator<Item = &'a Statement>,
    ) {
        let lines = statements.into_iter().map(without_secret).collect();
        self.remarks.push(Remark { title, lines });
    }

    /// A row with the words of the option's own entry.
    pub(super) fn by_entry(&mut self, setting: &Setting) {
        let fate = setting.entry.fate;
        let outcome = match fate {
            Fate::Carried(_) | Fate::Anyway(_) => Outcome::Carried,
            Fate::Noted(..) => Outcome::Noted,
            Fate::Dropped { off, .. } if !off.is_empty() && setting.statement.word() == off => {
                return self.row(setting, Outcome::Carried, "", "it asks for nothing");
            }
            Fate::Dropped { .. } => Outcome::Dropped,
        };
        self.row(setting, outcome, fate.keys(), fate.note());
    }

    /// A row for a line that a key has, or that needs none.
    pub(super) fn carried(&mut self, setting: &Setting, keys: impl Into<String>) {
        self.row(setting, Outcome::Carried, keys, "");
    }

    /// A row for a line that has a key, with a note.
    pub(super) fn noted(
        &mut self,
        setting: &Setting,
        keys: impl Into<String>,
        note: impl Into<String>,
    ) {
        self.row(setting, Outcome::Noted, keys, note);
    }

    /// A row for a line that is not carried over.
    pub(super) fn dropped(&mut self, setting: &Setting, why: impl Into<String>) {
        self.row(setting, Outcome::Dropped, "", why);
    }

    /// A row for an unknown line.
    pub(super) fn unknown(&mut self, statement: &Statement, note: String) {
        self.report.rows.push(Row {
            outcome: Outcome::Unknown,
            at: statement.at.clone(),
            option: statement.name.clone(),
            keys: String::new(),
            note,
        });
    }

    /// Adds to the note of a line.
    pub(super) fn add_note(&mut self, setting: &Setting, note: &str) {
        let rows = self.report.rows.iter_mut();
        for row in rows.filter(|row| row.at == setting.statement.at) {
            row.outcome = row.outcome.max(Outcome::Noted);
            let separator = if row.note.is_empty() { "" } else { "; " };
            row.note = format!("{}{separator}{note}", row.note);
        }
    }

    fn row(
        &mut self,
        setting: &Setting,
        outcome: Outcome,
        keys: impl Into<String>,
        note: impl Into<String>,
    ) {
        self.report.rows.push(Row {
            outcome,
            at: setting.statement.at.clone(),
            option: setting.statement.name.clone(),
            keys: keys.into(),
            note: note.into(),
        });
    }

    /// The file, and the source line of each of its lines.
    pub(super) fn write(&self, file: &str) -> (String, Vec<Option<At>>) {
        let mut page = Page::default();
        page.line(&format!(
            "# Made from {file} by: thrum config import mosquitto {file}"
        ));
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        // Keys of a table stay together, wherever they were set.
        let first = |table: &str| self.lines.iter().position(|line| line.table == table);
        let depth = |table: &str| table.split('.').count();
        lines.sort_by_key(|line| {
            let table = &line.table;
            (rank(table), depth(table), first(table))
        });
        for section in lines.chunk_by(|left, right| left.table == right.table) {
            page.section(section);
        }
        for remark in &self.remarks {
            page.line("");
            page.line(&format!("# {}", remark.title));
            for line in &remark.lines {
                page.line(&format!("#   {line}"));
            }
        }
        (page.text, page.origins)
    }
}

/// A file in the making.
#[derive(Default)]
struct Page {
    text: String,
    origins: Vec<Option<At>>,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
        self.origins.push(None);
    }

    fn section(&mut self, lines: &[&Line]) {
        let widths = lines.iter().map(|line| line.setting.chars().count());
        let column = widths
            .filter(|width| *width <= COMMENT_COLUMN_MAX)
            .max()
            .unwrap_or(0);
        self.line("");
        self.line(&format!("[{}]", lines[0].table));
        for line in lines {
            let setting = &line.setting;
            let (origin, at) = match &line.origin {
                Origin::Line(at) => (at.to_string(), Some(at.clone())),
                Origin::Default(why) => ((*why).to_owned(), None),
            };
            self.line(&format!("{setting:<column$}  # {origin}"));
            if let Some(last) = self.origins.last_mut() {
                *last = at;
            }
        }
    }
}

/// Place of the tables of a kind in the file.
fn rank(table: &str) -> usize {
    let known = |name: &str| TABLES.iter().position(|known| *known == name);
    let kind = table.split('.').next().unwrap_or_default();
    known(table).or_else(|| known(kind)).unwrap_or(TABLES.len())
}

fn without_secret(statement: &Statement) -> String {
    let Statement {
        name, value, at, ..
    } = statement;
    if statement.is_secret() {
        return format!("{name} (its value is in {at})");
    }
    format!("{name} {value}").trim_end().to_owned()
}
