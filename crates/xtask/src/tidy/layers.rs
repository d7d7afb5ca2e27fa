//! Dependencies point downwards: a row of the table in ARCHITECTURE.md may use only the rows below
//! it.

use std::collections::BTreeMap;

use crate::violation::Violation;
use crate::workspace::Package;

/// Rows from bottom to top; each entry is the folder of a crate.
const ROWS: [(&str, &[&str]); 10] = [
    ("wire", &["codec"]),
    ("pure", &["access", "figures", "protocol", "routing"]),
    ("system", &["files"]),
    (
        "library",
        &["protection", "report", "scram", "settings", "transport"],
    ),
    ("edge", &["storage", "quic"]),
    ("machine", &["engine", "load"]),
    ("node", &["broker", "bench", "client", "relay"]),
    ("parts", &["auth", "compare", "migrate", "view"]),
    ("control", &["management"]),
    ("program", &["thrum"]),
];
/// Development tools: they may use everything, and the product may not use them.
const DEVELOPMENT: [&str; 7] = [
    "attacks",
    "backends",
    "conformance",
    "counts",
    "crash",
    "fuzz",
    "xtask",
];

/// Whether the crate in this folder is `no_std` by design.
pub(super) fn is_pure(folder: &str) -> bool {
    row_of(folder).is_some_and(|row| ROWS[row].0 == "wire" || ROWS[row].0 == "pure")
}

/// Finds dependencies that point sideways or upwards, and crates without a row.
pub(super) fn check(packages: &[Package], source: &BTreeMap<String, String>) -> Vec<Violation> {
    let mut found = Vec::new();
    for package in packages {
        let folder = folder_of(&package.name);
        if DEVELOPMENT.contains(&folder) {
            continue;
        }
        let Some(row) = row_of(folder) else {
            let message = format!(
                "`{}` has no row; add it to ROWS in xtask and to ARCHITECTURE.md",
                package.name
            );
            found.push(Violation::new(&package.manifest, 1, message));
            continue;
        };
        for dependency in &package.dependencies {
            let below = folder_of(&dependency.name);
            let ours = packages.iter().any(|other| other.name == dependency.name);
            if ours && !is_allowed(row, below, dependency.dev) {
                let line = line_of(source.get(&package.manifest), &dependency.name);
                let message = format!(
                    "`{}` ({}) must not depend on `{}`; move the shared part to a row below both",
                    package.name, ROWS[row].0, dependency.name
                );
                found.push(Violation::new(&package.manifest, line, message));
            }
        }
    }
    found
}

/// Tests may use their own row and the development tools.
fn is_allowed(row: usize, below: &str, dev: bool) -> bool {
    match row_of(below) {
        Some(other) => other < row || (dev && other == row),
        None => dev && DEVELOPMENT.contains(&below),
    }
}

fn row_of(folder: &str) -> Option<usize> {
    ROWS.iter().position(|(_, crates)| crates.contains(&folder))
}

fn folder_of(package: &str) -> &str {
    package.strip_prefix("thrum-").unwrap_or(package)
}

fn line_of(manifest: Option<&String>, dependency: &str) -> usize {
    let position =
        manifest.and_then(|text| text.lines().position(|line| line.starts_with(dependency)));
    position.map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn package(name: &str, dependencies: &[(&str, bool)]) -> Package {
        Package {
            name: name.to_owned(),
            manifest: format!("crates/{}/Cargo.toml", folder_of(name)),
            targets: Vec::new(),
            dependencies: dependencies
                .iter()
                .map(|(name, dev)| Dependency {
                    name: (*name).to_owned(),
                    dev: *dev,
                })
                .collect(),
        }
    }

    fn findings(packages: &[Package]) -> Vec<String> {
        check(packages, &BTreeMap::new())
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn downwards_is_allowed() {
        let packages = [
            package("thrum", &[("thrum-broker", false), ("anyhow", false)]),
            package(
                "thrum-broker",
                &[("thrum-codec", false), ("thrum-conformance", true)],
            ),
            package("thrum-codec", &[("proptest", true)]),
            package("thrum-conformance", &[("thrum-broker", false)]),
        ];
        assert_eq!(findings(&packages), [""; 0]);
    }

    #[test]
    fn upwards_sideways_and_development_tools_are_not() {
        let packages = [
            package("thrum-codec", &[("thrum-broker", false)]),
            package(
                "thrum-broker",
                &[("thrum-bench", false), ("thrum-conformance", false)],
            ),
            package("thrum-bench", &[]),
            package("thrum-conformance", &[]),
        ];
        assert_eq!(findings(&packages).len(), 3);
    }

    #[test]
    fn a_crate_needs_a_row() {
        let found = findings(&[package("thrum-new", &[])]);
        assert!(found[0].contains("has no row"), "{found:?}");
    }

    #[test]
    fn tests_do_not_reach_upwards() {
        let packages = [
            package("thrum-codec", &[("thrum-broker", true)]),
            package("thrum-broker", &[]),
        ];
        assert_eq!(findings(&packages).len(), 1);
    }
}
