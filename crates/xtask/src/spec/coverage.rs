//! Statements against tags: the coverage table.

use std::collections::BTreeSet;

use crate::spec::statements::{Document, Statement};
use crate::spec::tags::Tag;
use crate::violation::Violation;

/// How far one list is covered.
#[derive(Debug)]
pub(crate) struct Coverage<'a> {
    document: &'a Document,
    enforced: BTreeSet<&'a str>,
    tested: BTreeSet<&'a str>,
}

/// Numbers of one row of the table.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    statements: usize,
    enforced: usize,
    tested: usize,
    both: usize,
    left_out: usize,
}

impl<'a> Coverage<'a> {
    /// Looks up every statement of the list among the tags.
    pub(crate) fn of(document: &'a Document, tags: &'a [Tag]) -> Self {
        let ids = |test: bool| {
            tags.iter()
                .filter(move |tag| tag.test == test)
                .map(|tag| tag.id.as_str())
                .collect()
        };
        Self {
            document,
            enforced: ids(false),
            tested: ids(true),
        }
    }

    /// The list's name.
    pub(crate) fn name(&self) -> &str {
        &self.document.name
    }

    /// How many counting statements are both enforced and tested.
    pub(crate) fn both(&self) -> usize {
        self.counts(self.document.statements()).both
    }

    /// How many statements count.
    pub(crate) fn total(&self) -> usize {
        self.counts(self.document.statements()).statements
    }

    /// A row per section and one for the whole.
    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "{:<30}{:>10}{:>10}{:>8}{:>8}{:>10}\n",
            self.document.name, "statements", "enforced", "tested", "both", "left out"
        );
        for section in &self.document.sections {
            let counts = self.counts(section.statements.iter());
            text.push_str(&row(&format!("  {}", section.title), counts));
        }
        text.push_str(&row("  total", self.counts(self.document.statements())));
        text
    }

    /// A line per counting statement that lacks something.
    pub(crate) fn missing(&self) -> String {
        let mut text = String::new();
        for statement in self
            .document
            .statements()
            .filter(|statement| statement.counts)
        {
            let lack = match self.state(statement) {
                (true, true) => continue,
                (true, false) => "no test",
                (false, true) => "not enforced",
                (false, false) => "nothing",
            };
            let line = format!(
                "{:<18}{lack:<14}{:<8}{}\n",
                statement.id, statement.binds, statement.demand
            );
            text.push_str(&line);
        }
        text
    }

    /// Statements whose status says they do not count although they are enforced and tested.
    pub(crate) fn outdated(&self) -> Vec<Violation> {
        let done =
            |statement: &&Statement| !statement.counts && self.state(statement) == (true, true);
        let path = format!("docs/spec/{}.md", self.document.name);
        let violation = |statement: &Statement| {
            let message = format!("{} is enforced and tested; clear its status", statement.id);
            Violation::new(&path, statement.line, message)
        };
        self.document
            .statements()
            .filter(done)
            .map(violation)
            .collect()
    }

    fn state(&self, statement: &Statement) -> (bool, bool) {
        let id = statement.id.as_str();
        (self.enforced.contains(id), self.tested.contains(id))
    }

    fn counts<'s>(&self, statements: impl Iterator<Item = &'s Statement>) -> Counts {
        let mut counts = Counts::default();
        for statement in statements {
            if !statement.counts {
                counts.left_out += 1;
                continue;
            }
            let (enforced, tested) = self.state(statement);
            counts.statements += 1;
            counts.enforced += usize::from(enforced);
            counts.tested += usize::from(tested);
            counts.both += usize::from(enforced && tested);
        }
        counts
    }
}

fn row(title: &str, counts: Counts) -> String {
    let Counts {
        statements,
        enforced,
        tested,
        both,
        left_out,
    } = counts;
    format!("{title:<30}{statements:>10}{enforced:>10}{tested:>8}{both:>8}{left_out:>10}\n")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::spec::tags;

    /// A list of four statements of which three count; one is enforced and tested, one only tested.
    pub(in crate::spec) fn example() -> (Document, Vec<Tag>) {
        let list = "## 3.1 CONNECT\n| MQTT-3.1.0-1 | both | A. | |\n| MQTT-3.1.0-2 | both | B. | |\n\
            ## 6 WebSocket\n| MQTT-6.0.0-1 | both | C. | not yet: none |\n| MQTT-6.0.0-2 | both | D. | |\n";
        let document = Document::parse("docs/spec/mqtt5.md", list)
            .unwrap()
            .unwrap();
        let (mut found, _) = tags::read("a.rs", "// [MQTT-3.1.0-1]", false);
        found.extend(
            tags::read(
                "a.rs",
                "// [MQTT-3.1.0-1] [MQTT-3.1.0-2] [MQTT-6.0.0-1]",
                true,
            )
            .0,
        );
        (document, found)
    }

    #[test]
    fn statements_that_are_left_out_do_not_count() {
        let (document, tags) = example();
        let coverage = Coverage::of(&document, &tags);
        let expected = Counts {
            statements: 3,
            enforced: 1,
            tested: 2,
            both: 1,
            left_out: 1,
        };
        assert_eq!(coverage.counts(document.statements()), expected);
        assert_eq!((coverage.both(), coverage.total()), (1, 3));
    }

    #[test]
    fn what_is_missing_is_named() {
        let (document, tags) = example();
        let missing = Coverage::of(&document, &tags).missing();
        let lines: Vec<&str> = missing.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("MQTT-3.1.0-2") && lines[0].contains("not enforced"));
        assert!(lines[1].starts_with("MQTT-6.0.0-2") && lines[1].contains("nothing"));
    }

    #[test]
    fn a_status_that_is_no_longer_true_is_reported() {
        let (document, mut tags) = example();
        assert_eq!(Coverage::of(&document, &tags).outdated(), []);
        tags.extend(tags::read("a.rs", "// [MQTT-6.0.0-1]", false).0);
        let found = Coverage::of(&document, &tags).outdated();
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().starts_with("docs/spec/mqtt5.md:5:"));
    }

    #[test]
    fn the_table_has_a_row_per_section_and_a_total() {
        let (document, tags) = example();
        let table = Coverage::of(&document, &tags).table();
        assert_eq!(table.lines().count(), 4);
        let total: Vec<&str> = table.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(total, ["total", "3", "1", "2", "1", "1"]);
    }
}
