//! Refuses tuple patterns as parameters: two values that belong together need a type with named
//! fields.

use crate::items::functions;
use crate::tidy::known::{Counts, Known, Limit, count_one};
use crate::tidy::product::ProductFile;
use crate::violation::Violation;

/// Tuple patterns as parameters, by crate.
pub(super) const TUPLES: Limit = Limit {
    table: "tuple_parameters",
    at_most: 0,
    what: "tuple parameters",
    why_and_cure: "the caller cannot see the meaning of the parts; make them two parameters, or give the \
        pair a struct that names them",
};

/// Finds functions with a tuple pattern in their parameter list; closures may have one.
pub(super) fn check(files: &[ProductFile<'_>], known: &Known) -> Vec<Violation> {
    let mut counts = Counts::new();
    for file in files {
        for function in functions(&file.masked) {
            for _ in function.parameters.iter().filter(|one| is_tuple(one)) {
                let name = file.crate_name().to_owned();
                count_one(&mut counts, name, file.path, file.line(function.at));
            }
        }
    }
    known.check(&TUPLES, &counts)
}

fn is_tuple(parameter: &str) -> bool {
    let mut pattern = parameter.trim();
    while let Some((_, behind)) = pattern
        .strip_prefix("#[")
        .and_then(|attribute| attribute.split_once(']'))
    {
        pattern = behind.trim_start();
    }
    pattern
        .trim_start_matches('&')
        .trim_start()
        .starts_with('(')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::product::product_files;

    fn count(text: &str) -> usize {
        let path = "crates/a/src/b.rs".to_owned();
        let source = [(path, text.to_owned())].into_iter().collect();
        let found = check(&product_files(&source), &Known::parse("").unwrap());
        found.len()
    }

    #[test]
    fn a_tuple_pattern_in_a_parameter_list_is_found() {
        for text in [
            "fn a((b, c): (u8, u8)) {}",
            "fn a(d: u8, &(b, c): &(u8, u8)) {}",
            "impl A { fn a(&self, #[cfg(b)] (b, c): (u8, u8)) {} }",
            "impl Iterator for A { fn fold<B>(self, (b, c): B) {} }",
        ] {
            assert_eq!(count(text), 1, "{text}");
        }
    }

    #[test]
    fn closures_types_and_named_patterns_are_allowed() {
        for text in [
            "fn a(pair: (u8, u8)) { b(|(c, d)| c) }",
            "fn a(call: fn((u8, u8))) -> (u8, u8) {}",
            "fn a<F: Fn((u8, u8)) -> u8>(call: F, Pair(b, c): Pair) {}",
            "#[test]\nfn a((b, c): (u8, u8)) {}",
        ] {
            assert_eq!(count(text), 0, "{text}");
        }
    }
}
