//! Compares statements with tags: which statements are enforced and tested, and where.

use std::collections::BTreeMap;

use crate::spec::statements::{Document, Statement};
use crate::spec::tags::Tag;
use crate::violation::Violation;

/// The coverage of one list.
#[derive(Debug)]
pub(crate) struct Coverage<'a> {
    document: &'a Document,
    tags: BTreeMap<&'a str, Places<'a>>,
}

/// The tags of one statement.
#[derive(Debug, Default)]
struct Places<'a> {
    enforced: Vec<&'a Tag>,
    tested: Vec<&'a Tag>,
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
    /// Finds the tags of every statement in the list.
    pub(crate) fn of(document: &'a Document, tags: &'a [Tag]) -> Self {
        let mut found: BTreeMap<&str, Places<'_>> = BTreeMap::new();
        for tag in tags {
            let places = found.entry(tag.id.as_str()).or_default();
            if tag.test {
                places.tested.push(tag);
            } else {
                places.enforced.push(tag);
            }
        }
        Self {
            document,
            tags: found,
        }
    }

    /// A row per section and a row of totals.
    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "{:<30}{:>10}{:>10}{:>8}{:>8}{:>10}\n",
            self.document.name, "statements", "enforced", "tested", "both", "excluded"
        );
        for section in &self.document.sections {
            let counts = self.counts(section.statements.iter());
            text.push_str(&row(&format!("  {}", section.title), counts));
        }
        text.push_str(&row("  total", self.counts(self.document.statements())));
        text
    }

    /// Each selected statement with the lines that enforce it and the tests that prove it.
    pub(crate) fn list(&self, wanted: Option<&str>) -> String {
        let mut text = String::new();
        for statement in self.document.statements() {
            if wanted.is_none_or(|wanted| is_within(&statement.id, wanted)) {
                text.push_str(&self.entry(statement));
            }
        }
        text
    }

    /// Required statements without an enforcing line or a test, and excluded ones that have both.
    pub(crate) fn violations(&self) -> Vec<Violation> {
        let path = self.path();
        let violation = |statement: &Statement| {
            let (enforced, tested) = self.state(statement);
            let what = match (statement.counts, enforced, tested) {
                (true, false, false) => "is neither enforced nor tested; tag the line and the test",
                (true, false, true) => "is not enforced; tag the line that enforces it",
                (true, true, false) => "is not tested; tag the test that proves it",
                (false, true, true) => "is enforced and tested; clear its status",
                (true, true, true) | (false, _, _) => return None,
            };
            let message = format!("{} {what}", statement.id);
            Some(Violation::new(&path, statement.line, message))
        };
        self.document.statements().filter_map(violation).collect()
    }

    fn entry(&self, statement: &Statement) -> String {
        let Statement {
            id,
            binds,
            demand,
            line,
            counts,
        } = statement;
        let excluded = if *counts { "" } else { " (excluded)" };
        let mut lines = vec![
            format!("{id} ({binds}){excluded}: {demand}"),
            format!("  listed at   {}:{line}", self.path()),
        ];
        if let Some(Places { enforced, tested }) = self.tags.get(id.as_str()) {
            lines.extend(
                enforced
                    .iter()
                    .map(|tag| format!("  enforced at {}", tag.place())),
            );
            lines.extend(
                tested
                    .iter()
                    .map(|tag| format!("  tested at   {}", tag.place())),
            );
        }
        lines.join("\n") + "\n"
    }

    fn path(&self) -> String {
        format!("docs/spec/{}.md", self.document.name)
    }

    /// Whether a statement is enforced, and whether it is tested.
    fn state(&self, statement: &Statement) -> (bool, bool) {
        self.tags
            .get(statement.id.as_str())
            .map_or((false, false), |places| {
                (!places.enforced.is_empty(), !places.tested.is_empty())
            })
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

/// Whether an id equals the wanted one or starts with it: `MQTT-3.3` includes `MQTT-3.3.1-2` and
/// not `MQTT-3.30.1-2`.
fn is_within(id: &str, wanted: &str) -> bool {
    id.strip_prefix(wanted)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
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
mod tests {
    use super::*;
    use crate::spec::tags;

    /// A list of four statements, three of them required; one is enforced and tested, one only
    /// tested.
    fn example() -> (Document, Vec<Tag>) {
        let list = "## 3.1 CONNECT\n| MQTT-3.1.0-1 | both | A. | |\n| MQTT-3.1.0-2 | both | B. | |\n\
            ## 6 WebSocket\n| MQTT-6.0.0-1 | both | C. | not yet: none |\n| MQTT-6.0.0-2 | both | D. | |\n";
        let document = Document::parse("docs/spec/mqtt5.md", list)
            .unwrap()
            .unwrap();
        let mut found = read("src/a.rs", "\n// [MQTT-3.1.0-1]");
        found.extend(read(
            "tests/b.rs",
            "// [MQTT-3.1.0-1] [MQTT-3.1.0-2] [MQTT-6.0.0-1]",
        ));
        (document, found)
    }

    fn read(path: &str, text: &str) -> Vec<Tag> {
        tags::read(path, text).0
    }

    fn lines(violations: &[Violation]) -> Vec<String> {
        violations.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn excluded_statements_are_not_counted() {
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
    }

    #[test]
    fn every_required_statement_must_be_enforced_and_tested() {
        let (document, tags) = example();
        let found = lines(&Coverage::of(&document, &tags).violations());
        assert_eq!(found.len(), 2, "{found:?}");
        let [not_enforced, neither] = [&found[0], &found[1]];
        assert!(not_enforced.starts_with("docs/spec/mqtt5.md:3: MQTT-3.1.0-2 is not enforced"));
        assert!(neither.starts_with("docs/spec/mqtt5.md:6: MQTT-6.0.0-2 is neither"));
        let untested = read("src/a.rs", "// [MQTT-6.0.0-2]");
        let found = lines(&Coverage::of(&document, &untested).violations());
        assert!(found[2].contains("MQTT-6.0.0-2 is not tested"), "{found:?}");
    }

    #[test]
    fn an_outdated_status_is_reported() {
        let (document, mut tags) = example();
        tags.extend(read("src/a.rs", "// [MQTT-6.0.0-1]"));
        let found = lines(&Coverage::of(&document, &tags).violations());
        assert!(found[1].starts_with("docs/spec/mqtt5.md:5: MQTT-6.0.0-1 is enforced and tested"));
    }

    #[test]
    fn a_list_names_the_line_that_enforces_and_the_test_that_proves() {
        let (document, tags) = example();
        let coverage = Coverage::of(&document, &tags);
        assert_eq!(
            coverage.list(Some("MQTT-3.1.0-1")),
            "MQTT-3.1.0-1 (both): A.\n  listed at   docs/spec/mqtt5.md:2\n  \
             enforced at src/a.rs:2\n  tested at   tests/b.rs:1\n"
        );
        let statements = |wanted| coverage.list(wanted).matches("listed at").count();
        assert_eq!(statements(None), 4);
        assert_eq!(statements(Some("MQTT-3.1")), 2);
        assert_eq!(statements(Some("MQTT-3.1.0-")), 0);
        assert!(coverage.list(Some("MQTT-6.0.0-1")).contains("(excluded)"));
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
