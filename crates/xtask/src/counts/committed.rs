//! The committed counts: reading, writing and comparison.

use anyhow::{Context, Result};
use toml_edit::{DocumentMut, Item};

use super::Counts;

/// Relative deviation that is allowed: the C library and paths of a machine change counts by up to
/// 2 %.
const TOLERANCE: f64 = 0.05;
/// Absolute deviation in instructions that is always allowed, for short cases.
const TOLERANCE_MIN: f64 = 3.0;

const HEADER: &str = "\
# Instructions per operation. `cargo xtask counts` fails where a count has moved by more than 5 % in either direction;
# README.md beside this file says what to do then. Written by `UPDATE_COUNTS=1 cargo xtask counts`.
";

/// Content of the file.
#[derive(Debug)]
pub(super) struct Committed {
    pub(super) compiler: String,
    pub(super) instructions: Counts,
}

impl Committed {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let document: DocumentMut = text.parse()?;
        let compiler = document
            .get("compiler")
            .and_then(Item::as_str)
            .context("`compiler` is missing")?;
        let table = document
            .get("instructions")
            .and_then(Item::as_table)
            .context("`[instructions]` is missing")?;
        let mut instructions = Counts::new();
        for (name, count) in table {
            let count = count
                .as_float()
                .with_context(|| format!("`{name}` is not a number with a decimal point"))?;
            instructions.insert(name.to_owned(), count);
        }
        Ok(Self {
            compiler: compiler.to_owned(),
            instructions,
        })
    }
}

/// Content of the file for these counts.
pub(super) fn text(compiler: &str, counts: &Counts) -> String {
    let lines: Vec<String> = counts
        .iter()
        .map(|(name, count)| format!("{name} = {count:.1}\n"))
        .collect();
    format!(
        "{HEADER}\ncompiler = \"{compiler}\"\n\n[instructions]\n{}",
        lines.concat()
    )
}

/// Every case with its count and the deviation from the committed one.
pub(super) fn table(counts: &Counts, committed: &Counts) -> String {
    let width = counts.keys().map(String::len).max().unwrap_or(0);
    let lines = counts.iter().map(|(name, now)| match committed.get(name) {
        Some(before) => {
            let percent = change(*before, *now) * 100.0;
            format!("{name:width$}  {now:12.1}  {before:9.1}  {percent:+6.1} %\n")
        }
        None => format!("{name:width$}  {now:12.1}\n"),
    });
    let head = format!("{:width$}  instructions  committed    change\n", "case");
    std::iter::once(head)
        .chain(lines)
        .collect::<Vec<_>>()
        .concat()
}

/// Cases that cost more or less than committed, are new, or no longer exist.
pub(super) fn differences(committed: &Counts, counts: &Counts) -> Vec<String> {
    let mut found = Vec::new();
    for (name, before) in committed {
        let Some(now) = counts.get(name) else {
            found.push(format!("`{name}` is no longer a case"));
            continue;
        };
        let tolerated = (before * TOLERANCE).max(TOLERANCE_MIN);
        let percent = change(*before, *now) * 100.0;
        if now - before > tolerated {
            found.push(format!(
                "`{name}` costs {now:.1} instructions, {percent:.1} % more than {before:.1}"
            ));
        } else if before - now > tolerated {
            found.push(format!(
                "`{name}` costs {now:.1} instructions, {:.1} % less than {before:.1}: keep the gain",
                -percent
            ));
        }
    }
    let new = counts.keys().filter(|name| !committed.contains_key(*name));
    found.extend(new.map(|name| format!("`{name}` is not in the file yet")));
    found
}

fn change(before: f64, now: f64) -> f64 {
    now / before - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(list: &[(&str, f64)]) -> Counts {
        list.iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect()
    }

    #[test]
    fn written_counts_are_read_again() {
        let counts = counts(&[("a", 12.3), ("b", 1000.0)]);
        let committed = Committed::parse(&text("rustc 1 x", &counts)).unwrap();
        assert_eq!(committed.compiler, "rustc 1 x");
        assert_eq!(committed.instructions, counts);
    }

    #[test]
    fn a_file_without_compiler_or_with_a_wrong_count_is_refused() {
        assert!(Committed::parse("[instructions]\n").is_err());
        assert!(Committed::parse("compiler = \"c\"\n").is_err());
        assert!(Committed::parse("compiler = \"c\"\n[instructions]\na = \"x\"\n").is_err());
    }

    #[test]
    fn more_than_the_tolerance_is_found_in_either_direction() {
        let before = counts(&[("a", 1000.0)]);
        let found = |now| differences(&before, &counts(&[("a", now)])).len();
        assert_eq!([found(1049.0), found(951.0)], [0, 0]);
        assert_eq!([found(1051.0), found(949.0)], [1, 1]);
    }

    #[test]
    fn a_short_case_may_differ_by_some_instructions() {
        let before = counts(&[("a", 20.0)]);
        let found = |now| differences(&before, &counts(&[("a", now)])).len();
        assert_eq!([found(23.0), found(17.0)], [0, 0]);
        assert_eq!([found(24.0), found(16.0)], [1, 1]);
    }

    #[test]
    fn a_new_case_and_a_missing_one_are_found() {
        let found = differences(&counts(&[("a", 1.0)]), &counts(&[("b", 1.0)]));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn the_table_has_a_line_for_each_case() {
        let table = table(
            &counts(&[("a", 110.0), ("b", 5.0)]),
            &counts(&[("a", 100.0)]),
        );
        assert_eq!(table.lines().count(), 3);
        assert!(table.contains("+10.0 %"), "{table}");
    }
}
