//! Requires that every Rust file is compiled: a target of cargo, a `mod` or a `#[path]` refers to
//! it.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::is_rust;
use crate::violation::Violation;
use crate::workspace::Package;

/// Finds files without a reference.
pub(super) fn check(packages: &[Package], source: &BTreeMap<String, String>) -> Vec<Violation> {
    let message = "no `mod` refers to this file; declare it or delete it";
    let files = source.iter().filter(|(path, _)| is_rust(path));
    let targets = packages.iter().flat_map(|package| &package.targets);
    let named: BTreeSet<String> = files
        .clone()
        .flat_map(|(path, text)| modules_named_in(path, text))
        .chain(targets.map(|path| module_of(path)))
        .collect();
    files
        .filter(|(path, _)| !named.contains(&module_of(path)))
        .map(|(path, _)| Violation::new(path, 1, message))
        .collect()
}

/// Possible files of a module declaration: in the same folder, or in the folder with the name of
/// the file.
pub(super) fn modules_named_in(path: &str, text: &str) -> Vec<String> {
    let folder = folder_of(path);
    let mut named = Vec::new();
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or(line).trim();
        if let Some((_, rest)) = code.split_once("#[path = \"") {
            let target = rest.split('"').next().unwrap_or(rest);
            named.push(module_of(&match target.strip_prefix("../") {
                Some(target) => format!("{}/{target}", folder_of(folder)),
                None => format!("{folder}/{target}"),
            }));
        } else if let Some((_, name)) = code.strip_suffix(';').and_then(|it| it.rsplit_once("mod "))
        {
            named.push(format!("{folder}/{name}"));
            named.push(format!("{}/{name}", module_of(path)));
        }
    }
    named
}

/// `a/b` for `a/b.rs` and `a/b/mod.rs`.
pub(super) fn module_of(path: &str) -> String {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    path.strip_suffix("/mod").unwrap_or(path).to_owned()
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_needs_a_mod_a_path_or_a_target() {
        let package = Package {
            name: "thrum-a".to_owned(),
            manifest: "a/Cargo.toml".to_owned(),
            targets: vec!["a/src/lib.rs".to_owned(), "a/build.rs".to_owned()],
            dependencies: Vec::new(),
        };
        let source = BTreeMap::from(
            [
                ("src/lib.rs", "pub mod b;\nmod c;\n// mod dead;"),
                (
                    "src/b.rs",
                    "mod deep; // why\n#[path = \"../else/where.rs\"]\nmod d;",
                ),
                ("src/b/deep.rs", ""),
                ("src/c/mod.rs", ""),
                ("src/dead.rs", ""),
                ("src/c/b.rs", ""),
                ("else/where.rs", ""),
                ("build.rs", ""),
            ]
            .map(|(path, text)| (format!("a/{path}"), text.to_owned())),
        );
        let found: Vec<String> = check(&[package], &source)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("a/src/c/b.rs:1:"), "{found:?}");
        assert!(found[1].starts_with("a/src/dead.rs:1:"), "{found:?}");
    }
}
