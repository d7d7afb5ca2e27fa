//! Finds public functions without callers: rustc does not check across crates.

use std::collections::{BTreeMap, BTreeSet};

use crate::items::{functions, words};
use crate::tidy::known::{Counts, Known, Limit, count_one};
use crate::tidy::product::ProductFile;
use crate::violation::Violation;

/// Public functions of libraries that product code mentions only in their definition.
pub(super) const UNCALLED: Limit = Limit {
    table: "uncalled",
    at_most: 0,
    what: "definition and no use in product code",
    why_and_cure: "only tests call it; remove it, or make it \
        `#[cfg(test)]` or private to what uses it",
};

/// Finds `pub fn`s of libraries that only tests call, by their names.
pub(super) fn check(files: &[ProductFile<'_>], known: &Known) -> Vec<Violation> {
    let libraries: BTreeSet<&str> = files
        .iter()
        .filter(|file| file.path.ends_with("/src/lib.rs"))
        .map(ProductFile::crate_name)
        .collect();
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files {
        let code = words(&file.masked).map(|(_, word)| word);
        for word in code.chain(words_of_attributes(file)) {
            *named.entry(word).or_default() += 1;
        }
    }
    let mut counts = Counts::new();
    for file in files {
        for function in functions(&file.masked) {
            let is_once = named.get(function.name.as_str()) == Some(&1);
            if function.is_public && is_once && libraries.contains(file.crate_name()) {
                let name = format!("{}::{}", file.crate_name(), function.name);
                count_one(&mut counts, name, file.path, file.line(function.at));
            }
        }
    }
    known.check(&UNCALLED, &counts)
}

/// `#[serde(default = "path::function")]` refers to a function in a literal.
fn words_of_attributes<'a>(file: &'a ProductFile<'_>) -> impl Iterator<Item = &'a str> {
    let lines = file.masked.lines().zip(file.text.lines());
    lines
        .filter(|(code, _)| code.contains("= \"") && !code.contains(';'))
        .flat_map(|(_, written)| words(written).map(|(_, word)| word).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::product::product_files;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let source = files
            .iter()
            .map(|(path, text)| (format!("crates/{path}.rs"), (*text).to_owned()))
            .collect();
        let known = Known::parse("").unwrap();
        let found = check(&product_files(&source), &known);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_public_function_that_only_tests_call_is_found() {
        let library =
            "impl A { pub fn dead() {} }\n// dead\n#[cfg(test)]\nmod tests { fn a() { dead() } }";
        let found = findings(&[("a/src/lib", library)]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/a/src/lib.rs:1: `a::dead` has 1 definition"));
    }

    #[test]
    fn functions_mentioned_by_product_code_are_used() {
        for user in [
            "fn b() { a::used() }",
            "#[serde(default = \"a::used\")]\nb: u8,",
        ] {
            let files = [("a/src/lib", "pub fn used() {}"), ("b/src/main", user)];
            assert_eq!(findings(&files), [""; 0], "{user}");
        }
    }

    #[test]
    fn programs_and_private_functions_are_left_to_rustc() {
        let files = [
            (
                "a/src/lib",
                "pub(crate) fn a() {}\nimpl B for C { fn b() {} }",
            ),
            ("b/src/main", "pub fn c() {}"),
        ];
        assert_eq!(findings(&files), [""; 0]);
    }
}
