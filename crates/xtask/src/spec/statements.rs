//! The lists of normative statements in `docs/spec/`.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};

/// One list: the statements of one protocol version.
#[derive(Debug)]
pub(crate) struct Document {
    /// File name without extension.
    pub(crate) name: String,
    pub(crate) sections: Vec<Section>,
}

/// A heading of the list with its statements.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) statements: Vec<Statement>,
}

/// A row of a list.
#[derive(Debug)]
pub(crate) struct Statement {
    /// `MQTT-3.3.1-2` or `MQTT3-3.3.1-2`.
    pub(crate) id: String,
    pub(crate) binds: String,
    pub(crate) demand: String,
    /// Its line in the list.
    pub(crate) line: usize,
    /// False if the status is `not yet` or `n/a`.
    pub(crate) counts: bool,
}

impl Document {
    /// Reads a list; returns `None` for a file without statements.
    pub(crate) fn parse(path: &str, text: &str) -> Result<Option<Self>> {
        let mut sections: Vec<Section> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if let Some(title) = line.strip_prefix("## ") {
                sections.push(Section {
                    title: title.trim().to_owned(),
                    statements: Vec::new(),
                });
            } else if line.starts_with("| MQTT") {
                let at = || format!("{path}:{}", index + 1);
                let section = sections.last_mut();
                let section = section.with_context(|| format!("{}: no `## ` above", at()))?;
                section
                    .statements
                    .push(Statement::parse(line, index + 1).with_context(at)?);
            }
        }
        sections.retain(|section| !section.statements.is_empty());
        let mut ids = BTreeSet::new();
        for statement in sections.iter().flat_map(|section| &section.statements) {
            if !ids.insert(statement.id.as_str()) {
                bail!("{path}: {} is listed twice", statement.id);
            }
        }
        let name = path
            .rsplit('/')
            .next()
            .unwrap_or(path)
            .trim_end_matches(".md")
            .to_owned();
        Ok((!sections.is_empty()).then_some(Self { name, sections }))
    }

    /// Every statement of the list.
    pub(crate) fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.sections.iter().flat_map(|section| &section.statements)
    }
}

impl Statement {
    fn parse(row: &str, line: usize) -> Result<Self> {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, id, binds, demand, status, _] = cells.as_slice() else {
            bail!("a row has four cells: id, binds, demand, status");
        };
        if !["server", "client", "both"].contains(binds) {
            bail!("`{binds}` is not one of server, client, both");
        }
        let explained = |word: &str| {
            status
                .strip_prefix(word)
                .is_some_and(|reason| !reason.trim().is_empty())
        };
        let counts = status.is_empty();
        if !counts && !explained("not yet:") && !explained("n/a:") {
            bail!("the status `{status}` must be `not yet: reason` or `n/a: reason`");
        }
        Ok(Self {
            id: (*id).to_owned(),
            binds: (*binds).to_owned(),
            demand: (*demand).to_owned(),
            line,
            counts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# T\n\n## 3.1 CONNECT\n\n| id | binds | what | status |\n|---|---|---|---|\n\
        | MQTT-3.1.0-1 | client | First. | |\n| MQTT-6.0.0-1 | both | Frames. | not yet: no listener |\n";

    #[test]
    fn rows_are_read_with_their_section_and_status() {
        let document = Document::parse("docs/spec/mqtt5.md", LIST)
            .unwrap()
            .unwrap();
        assert_eq!(document.name, "mqtt5");
        assert_eq!(document.sections[0].title, "3.1 CONNECT");
        let counts: Vec<bool> = document
            .statements()
            .map(|statement| statement.counts)
            .collect();
        assert_eq!(counts, [true, false]);
    }

    #[test]
    fn prose_is_not_a_list() {
        assert!(
            Document::parse("docs/spec/README.md", "# Prose\n\n## Use\n")
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn mistakes_are_refused() {
        for (from, to) in [
            ("| client |", "| clients |"),
            ("| not yet: no listener |", "| later |"),
            ("MQTT-6.0.0-1", "MQTT-3.1.0-1"),
        ] {
            assert!(
                Document::parse("a.md", &LIST.replace(from, to)).is_err(),
                "{to}"
            );
        }
    }
}
