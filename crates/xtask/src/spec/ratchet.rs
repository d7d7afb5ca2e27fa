//! The marks in `coverage.toml`: what has been covered once stays covered.

use anyhow::{Context, Result};
use toml_edit::{DocumentMut, Item, Table, value};

use crate::spec::coverage::Coverage;
use crate::violation::Violation;

const KEY: &str = "enforced_and_tested";

/// Finds lists whose coverage has fallen below their mark.
pub(crate) fn check(path: &str, marks: &str, covered: &[Coverage<'_>]) -> Result<Vec<Violation>> {
    let marks = parse(marks)?;
    let mut found = Vec::new();
    for coverage in covered {
        let (mark, now) = (mark_of(&marks, coverage.name())?, coverage.both());
        if now < mark {
            let message = format!(
                "{}: {now} of {} statements are enforced and tested, {mark} were; \
                 bring the tag back (`cargo xtask spec --missing` names the candidates)",
                coverage.name(),
                coverage.total()
            );
            found.push(Violation::new(path, 1, message));
        } else if now > mark {
            println!(
                "{}: {now} of {}, the mark is {mark}; raise it: cargo xtask spec --update",
                coverage.name(),
                coverage.total()
            );
        }
    }
    Ok(found)
}

/// The file with every mark raised to what is covered now; no mark falls.
pub(crate) fn raised(marks: &str, covered: &[Coverage<'_>]) -> Result<String> {
    let mut marks = parse(marks)?;
    for coverage in covered {
        let mark = mark_of(&marks, coverage.name())?.max(coverage.both());
        let table = marks
            .entry(coverage.name())
            .or_insert_with(|| Item::Table(Table::new()));
        table[KEY] = value(i64::try_from(mark)?);
    }
    Ok(marks.to_string())
}

fn parse(marks: &str) -> Result<DocumentMut> {
    marks.parse().context("docs/spec/coverage.toml")
}

fn mark_of(marks: &DocumentMut, name: &str) -> Result<usize> {
    match marks.get(name).and_then(|table| table.get(KEY)) {
        Some(mark) => {
            let number = mark
                .as_integer()
                .with_context(|| format!("{name}.{KEY} is not a number"))?;
            Ok(usize::try_from(number)?)
        }
        None => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::coverage::tests::example;

    #[test]
    fn a_fall_is_reported_and_a_rise_is_not() {
        let (document, tags) = example();
        let covered = [Coverage::of(&document, &tags)];
        let findings = |mark: usize| {
            check("c.toml", &format!("[mqtt5]\n{KEY} = {mark}\n"), &covered)
                .unwrap()
                .len()
        };
        assert_eq!([findings(0), findings(1), findings(2)], [0, 0, 1]);
        assert_eq!(check("c.toml", "", &covered).unwrap(), []);
    }

    #[test]
    fn marks_only_rise_and_comments_stay() {
        let (document, tags) = example();
        let covered = [Coverage::of(&document, &tags)];
        let low = raised(&format!("# why\n[mqtt5]\n{KEY} = 0\n"), &covered).unwrap();
        assert_eq!(low, format!("# why\n[mqtt5]\n{KEY} = 1\n"));
        let high = format!("[mqtt5]\n{KEY} = 9\n");
        assert_eq!(raised(&high, &covered).unwrap(), high);
    }
}
