//! The size of a type: methods, files with methods, and fields. A limit on files does not limit
//! types.

use std::collections::{BTreeMap, BTreeSet};

use crate::items::{definitions, methods};
use crate::tidy::known::{Count, Counts, Known, Limit, count_one};
use crate::tidy::product::ProductFile;
use crate::violation::Violation;

/// Methods of one type, in all its `impl Type` blocks.
pub(super) const METHODS: Limit = Limit {
    table: "methods",
    at_most: 40,
    what: "methods",
    why_and_cure: "a reader cannot keep that many in mind, and each may change every field; move a part \
        of the fields with their methods into a type of its own",
};
/// Files in which a type has `impl Type` blocks.
pub(super) const FILES: Limit = Limit {
    table: "files",
    at_most: 3,
    what: "files of methods",
    why_and_cure: "a type in so many files is several types that share all fields; give each file \
        a type of its own",
};
/// Named fields of a struct.
pub(super) const FIELDS: Limit = Limit {
    table: "fields",
    at_most: 20,
    what: "fields",
    why_and_cure: "a function never needs so many; group those that change together in a struct \
        of their own",
};

/// Finds types that are too large.
pub(super) fn check(files: &[ProductFile<'_>], known: &Known) -> Vec<Violation> {
    let types = Types::of(files);
    let mut method_counts = Counts::new();
    let mut places: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for file in files {
        for block in methods(&file.masked) {
            let name = types.name(file, &block.of);
            let line = file.line(block.at);
            let of_file = places.entry(name.clone()).or_default();
            of_file.insert(file.path);
            let count = method_counts
                .entry(name)
                .or_insert_with(|| Count::at(file.path, line, 0));
            count.total += block.count;
        }
    }
    let mut file_counts = Counts::new();
    for (name, paths) in places {
        for path in paths {
            count_one(&mut file_counts, name.clone(), path, 1);
        }
    }
    let mut found = known.check(&METHODS, &method_counts);
    found.extend(known.check(&FILES, &file_counts));
    found.extend(known.check(&FIELDS, &field_counts(files, &types)));
    found
}

fn field_counts(files: &[ProductFile<'_>], types: &Types) -> Counts {
    let mut counts = Counts::new();
    for file in files {
        for definition in definitions(&file.masked) {
            let count = Count::at(file.path, file.line(definition.at), definition.fields);
            counts.insert(types.name(file, &definition.name), count);
        }
    }
    counts
}

/// Definitions of types, to distinguish those with the same name.
struct Types {
    /// The modules of each `crate::Name`.
    modules: BTreeMap<String, BTreeSet<String>>,
}

impl Types {
    fn of(files: &[ProductFile<'_>]) -> Self {
        let mut modules: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for file in files {
            for definition in definitions(&file.masked) {
                let name = format!("{}::{}", file.crate_name(), definition.name);
                modules.entry(name).or_default().insert(file.module());
            }
        }
        Self { modules }
    }

    /// `crate::Name`, or with its module if the crate has several types of that name: a file refers
    /// to the nearest one.
    fn name(&self, file: &ProductFile<'_>, name: &str) -> String {
        let short = format!("{}::{name}", file.crate_name());
        let Some(modules) = self.modules.get(&short).filter(|all| all.len() > 1) else {
            return short;
        };
        let own = file.module();
        let nearest = modules
            .iter()
            .max_by_key(|module| (**module == own, shared_parts(module, &own)));
        match nearest.map(String::as_str) {
            None | Some("") => short,
            Some(module) => format!("{}::{module}::{name}", file.crate_name()),
        }
    }
}

/// Number of common modules of two paths, starting at the root.
fn shared_parts(left: &str, right: &str) -> usize {
    let parts = left.split("::").zip(right.split("::"));
    parts.take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::product::product_files;

    fn findings(files: &[(&str, String)], known: &str) -> Vec<String> {
        let source = files
            .iter()
            .map(|(path, text)| (format!("crates/a/src/{path}.rs"), text.clone()))
            .collect();
        let known = Known::parse(known).unwrap();
        let found = check(&product_files(&source), &known);
        found.iter().map(ToString::to_string).collect()
    }

    fn block(of: &str, methods: usize) -> String {
        format!("impl {of} {{ {} }}\n", "fn a() {} ".repeat(methods))
    }

    #[test]
    fn all_blocks_of_a_type_count_together() {
        let files = [("b", block("A", 20)), ("c", block("A<u8>", 20))];
        assert_eq!(findings(&files, ""), [""; 0]);
        let files = [("b", block("A", 20)), ("c", block("A<u8>", 21))];
        let found = findings(&files, "");
        assert!(found[0].starts_with("crates/a/src/b.rs:1: `a::A` has 41 methods"));
        assert_eq!(findings(&files, "[methods]\n\"a::A\" = 41\n"), [""; 0]);
    }

    #[test]
    fn methods_of_a_trait_do_not_count() {
        let files = [("b", block("B for A", 41))];
        assert_eq!(findings(&files, ""), [""; 0]);
    }

    #[test]
    fn a_type_has_methods_in_three_files() {
        let all = ["b", "c", "d", "e"].map(|path| (path, block("A", 1)));
        assert_eq!(findings(&all[..3], ""), [""; 0]);
        assert!(findings(&all, "")[0].contains("has 4 files of methods"));
    }

    #[test]
    fn types_of_the_same_name_are_distinguished_by_their_modules() {
        let two = ["b", "c"].map(|path| (path, format!("struct A;\n{}", block("A", 30))));
        assert_eq!(findings(&two, ""), [""; 0]);
        let [b, c] = two;
        let found = findings(&[b, c, ("c/d", block("A", 30))], "");
        assert!(found[0].contains("`a::c::A` has 60 methods"), "{found:?}");
    }

    #[test]
    fn a_struct_has_twenty_fields() {
        let of = |count| format!("struct A {{ {} }}\n", "a: b::C, ".repeat(count));
        assert_eq!(findings(&[("b", of(20))], ""), [""; 0]);
        assert!(findings(&[("b", of(21))], "")[0].contains("has 21 fields"));
    }
}
