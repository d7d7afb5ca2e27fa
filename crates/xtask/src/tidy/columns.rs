//! Lines of at most 100 columns: rustfmt formats code; this rule covers comments and everything
//! else.

use std::collections::BTreeMap;

use crate::source::{is_rust, string_literals};
use crate::tidy::known::{Counts, Known, Limit, count_one};
use crate::violation::Violation;

/// The same limit as in rustfmt.toml.
const COLUMNS_MAX: usize = 100;

/// Overlong lines, by crate or top folder.
pub(super) const COLUMNS: Limit = Limit {
    table: "columns",
    at_most: 0,
    what: "lines over 100 columns",
    why_and_cure: "two files do not fit side by side; break the line. The content of a string \
        literal is not counted, and a line with a URL may be longer",
};

/// Finds overlong lines in every Rust file.
pub(super) fn check(source: &BTreeMap<String, String>, known: &Known) -> Vec<Violation> {
    let mut counts = Counts::new();
    for (path, text) in source.iter().filter(|(path, _)| is_rust(path)) {
        for line in long_lines(text) {
            count_one(&mut counts, area_of(path).to_owned(), path, line);
        }
    }
    known.check(&COLUMNS, &counts)
}

/// Numbers of the lines that exceed the limit without the contents of their string literals.
fn long_lines(text: &str) -> Vec<usize> {
    let is_long = |line: &str| line.chars().count() > COLUMNS_MAX && !line.contains("://");
    if !text.lines().any(is_long) {
        return Vec::new();
    }
    let literals = string_literals(text);
    let mut found = Vec::new();
    let mut begin = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let end = begin + line.len();
        let line = line.trim_end_matches('\n');
        if is_long(line) {
            let inside = literals.iter().map(|literal| {
                let part = literal.start.max(begin)..literal.end.min(begin + line.len());
                text.get(part).map_or(0, |part| part.chars().count())
            });
            if line.chars().count() - inside.sum::<usize>() > COLUMNS_MAX {
                found.push(number);
            }
        }
        begin = end;
    }
    found
}

/// `crates/name`, or the top folder.
fn area_of(path: &str) -> &str {
    let depth = usize::from(path.starts_with("crates/"));
    path.match_indices('/')
        .nth(depth)
        .map_or(path, |(at, _)| &path[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_hundred_columns() {
        let comment = |columns: usize| format!("// {}\n", "ä".repeat(columns - 3));
        assert_eq!(long_lines(&comment(100)), [0; 0]);
        assert_eq!(long_lines(&format!("\n{}", comment(101))), [2]);
    }

    #[test]
    fn string_literals_and_addresses_may_be_longer() {
        let long = "x".repeat(120);
        for text in [
            format!("let a = \"{long}\";"),
            format!("let a = r#\"\n{long}\n\"#;"),
            format!("// https://example.org/{long}"),
        ] {
            assert_eq!(long_lines(&text), [0; 0], "{text}");
        }
        assert_eq!(long_lines(&format!("{long}(\"{long}\"); // {long}")), [1]);
    }

    #[test]
    fn lines_are_counted_by_area() {
        assert_eq!(area_of("crates/broker/src/lib.rs"), "crates/broker");
        assert_eq!(area_of("tests/crash/src/lib.rs"), "tests");
    }
}
