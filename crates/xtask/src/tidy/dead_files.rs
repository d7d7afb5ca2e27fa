//! Every Rust file of a package is compiled by one of its targets.

use std::collections::BTreeMap;

use crate::modules::reachable;
use crate::source::is_rust;
use crate::violation::Violation;
use crate::workspace::Package;

/// Finds files that no `mod` reaches.
pub(super) fn check(packages: &[Package], source: &BTreeMap<String, String>) -> Vec<Violation> {
    let mut found = Vec::new();
    for package in packages {
        let folder = package.manifest.trim_end_matches("Cargo.toml");
        let reached = reachable(&package.roots, source);
        let dead = source
            .keys()
            .filter(|path| path.starts_with(&format!("{folder}src/")) && is_rust(path))
            .filter(|path| !reached.contains_key(*path));
        found.extend(dead.map(|path| {
            Violation::new(
                path,
                1,
                "no `mod` reaches this file; declare it or delete it",
            )
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::Root;

    #[test]
    fn a_file_without_a_mod_is_dead() {
        let package = Package {
            name: "thrum-a".to_owned(),
            manifest: "crates/a/Cargo.toml".to_owned(),
            roots: vec![Root {
                path: "crates/a/src/lib.rs".to_owned(),
                test_only: false,
            }],
            dependencies: Vec::new(),
        };
        let source = BTreeMap::from(
            [
                ("src/lib.rs", "mod b;"),
                ("src/b.rs", ""),
                ("src/c.rs", ""),
                ("build.rs", ""),
            ]
            .map(|(path, text)| (format!("crates/a/{path}"), text.to_owned())),
        );
        let found = check(&[package], &source);
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().starts_with("crates/a/src/c.rs:1:"));
    }
}
