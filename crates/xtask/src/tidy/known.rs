//! Known exceptions: ceilings for existing violations of a limit, which may only decrease.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use toml_edit::Document;

use crate::source::line_at;
use crate::violation::Violation;

/// Path of the file.
pub(super) const FILE: &str = "crates/xtask/src/tidy/known.toml";

/// A limit, and the message for a violation.
pub(super) struct Limit {
    /// The table of its known exceptions.
    pub(super) table: &'static str,
    pub(super) at_most: usize,
    /// The counted items, as printed after the number.
    pub(super) what: &'static str,
    /// The reason for the limit and the remedy.
    pub(super) why_and_cure: &'static str,
}

/// A number of occurrences, and the first place.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) total: usize,
    pub(super) path: String,
    pub(super) line: usize,
    /// Further places, as `path:line`.
    pub(super) others: Vec<String>,
}

impl Count {
    /// All occurrences at one place.
    pub(super) fn at(path: &str, line: usize, count: usize) -> Self {
        Self {
            total: count,
            path: path.to_owned(),
            line,
            others: Vec::new(),
        }
    }
}

/// Counts by the name of the counted object.
pub(super) type Counts = BTreeMap<String, Count>;

/// Adds one to the count of a name.
pub(super) fn count_one(counts: &mut Counts, name: String, path: &str, line: usize) {
    match counts.get_mut(&name) {
        Some(known) => {
            known.total += 1;
            known.others.push(format!("{path}:{line}"));
        }
        None => drop(counts.insert(name, Count::at(path, line, 1))),
    }
}

/// The file with the known exceptions.
pub(super) struct Known {
    ceilings: BTreeMap<String, BTreeMap<String, Ceiling>>,
}

#[derive(Clone, Copy)]
struct Ceiling {
    at_most: usize,
    line: usize,
}

impl Known {
    /// Parses tables of numbers.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let document = Document::parse(text)?;
        let mut ceilings = BTreeMap::new();
        for (table, entries) in document.iter() {
            let entries = entries
                .as_table()
                .with_context(|| format!("`{table}` is not a table"))?;
            let mut named = BTreeMap::new();
            for (name, item) in entries {
                let at_most = item
                    .as_integer()
                    .and_then(|number| usize::try_from(number).ok());
                let ceiling = Ceiling {
                    at_most: at_most.with_context(|| format!("`{name}` has no number"))?,
                    line: item.span().map_or(1, |span| line_at(text, span.start)),
                };
                named.insert(name.to_owned(), ceiling);
            }
            ceilings.insert(table.to_owned(), named);
        }
        Ok(Self { ceilings })
    }

    /// Finds counts above the limit, or above the ceiling of a known exception, and ceilings that
    /// are too high.
    pub(super) fn check(&self, limit: &Limit, counts: &Counts) -> Vec<Violation> {
        let none = BTreeMap::new();
        let ceilings = self.ceilings.get(limit.table).unwrap_or(&none);
        let over = counts.iter().filter_map(|(name, count)| {
            let known = ceilings.get(name).map(|ceiling| ceiling.at_most);
            let ceiling = known.unwrap_or(0).max(limit.at_most);
            (count.total > ceiling).then(|| exceeded(limit, name, count, known))
        });
        let stale = ceilings.iter().filter_map(|(name, ceiling)| {
            let count = counts.get(name).map_or(0, |count| count.total);
            (count < ceiling.at_most || count <= limit.at_most)
                .then(|| too_high(limit, name, count, *ceiling))
        });
        over.chain(stale).collect()
    }

    /// Finds tables without a rule.
    pub(super) fn check_tables(&self, limits: &[&Limit]) -> Vec<Violation> {
        let unread = self
            .ceilings
            .keys()
            .filter(|table| limits.iter().all(|limit| limit.table != **table));
        unread
            .map(|table| {
                Violation::new(FILE, 1, format!("no rule has a table [{table}]; remove it"))
            })
            .collect()
    }
}

fn exceeded(limit: &Limit, name: &str, count: &Count, known: Option<usize>) -> Violation {
    let Limit {
        at_most,
        what,
        why_and_cure,
        ..
    } = limit;
    let known = known.map_or_else(String::new, |ceiling| {
        format!(", and than the {ceiling} that are known in {FILE}")
    });
    let others = match count.others.as_slice() {
        [] => String::new(),
        others => format!("; further places: {}", others.join(", ")),
    };
    let message = format!(
        "`{name}` has {} {what}, more than the limit of {at_most}{known}: {why_and_cure}{others}",
        count.total
    );
    Violation::new(&count.path, count.line, message)
}

fn too_high(limit: &Limit, name: &str, count: usize, ceiling: Ceiling) -> Violation {
    let what = limit.what;
    let message = if count <= limit.at_most {
        format!("`{name}` has {count} {what}, within the limit; remove this line")
    } else {
        format!("`{name}` has {count} {what} now; lower this to {count}")
    };
    Violation::new(FILE, ceiling.line, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Limit = Limit {
        table: "methods",
        at_most: 40,
        what: "methods",
        why_and_cure: "divide it",
    };

    fn findings(known: &str, count: usize) -> Vec<String> {
        let place = Count::at("a.rs", 7, count);
        let counts = Counts::from([("a::A".to_owned(), place)]);
        let known = Known::parse(known).unwrap();
        let found = known.check(&LIMIT, &counts);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_limit_applies_without_a_known_exception() {
        assert_eq!(findings("", 40), [""; 0]);
        let found = findings("", 41);
        assert!(found[0].starts_with("a.rs:7: `a::A` has 41 methods"));
        assert!(
            found[0].ends_with("the limit of 40: divide it"),
            "{found:?}"
        );
    }

    #[test]
    fn all_places_are_listed() {
        let mut counts = Counts::new();
        for line in [3, 5] {
            count_one(&mut counts, "a".to_owned(), "a.rs", line);
        }
        let limit = Limit {
            at_most: 1,
            ..LIMIT
        };
        let found = Known::parse("").unwrap().check(&limit, &counts);
        let text = found[0].to_string();
        assert!(text.starts_with("a.rs:3: ") && text.ends_with("; further places: a.rs:5"));
    }

    #[test]
    fn a_known_exception_must_not_grow() {
        let known = "[methods]\n\"a::A\" = 50\n";
        assert_eq!(findings(known, 50), [""; 0]);
        assert!(findings(known, 51)[0].contains("and than the 50 that are known"));
    }

    #[test]
    fn the_ceiling_of_a_known_exception_follows_a_decrease() {
        let known = "[methods]\n\"a::A\" = 50\n";
        let found = findings(known, 49);
        assert!(found[0].starts_with(&format!("{FILE}:2: ")), "{found:?}");
        assert!(found[0].contains("lower this to 49"), "{found:?}");
        assert!(findings(known, 40)[0].contains("remove this line"));
        let gone = findings("[methods]\n\"a::B\" = 50\n", 0);
        assert!(gone[0].contains("remove this line"), "{gone:?}");
    }

    #[test]
    fn a_table_needs_a_rule() {
        let known = Known::parse("[methods]\n[other]\n").unwrap();
        assert_eq!(known.check_tables(&[&LIMIT]).len(), 1);
        assert!(Known::parse("[methods]\na = \"x\"\n").is_err());
    }
}
