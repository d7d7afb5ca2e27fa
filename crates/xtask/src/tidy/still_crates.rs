//! Crates that only compute: their product code names no file, socket, thread, process or clock.
//!
//! They use `std`, for maps, paths and errors, so that the compiler does not see to it as it does
//! for the crates without `std`.

use crate::items::words;
use crate::tidy::product::ProductFile;
use crate::violation::Violation;
use crate::workspace::Package;

/// Folders of these crates.
const STILL: [&str; 1] = ["load"];
/// Modules of `std` that reach out of the program.
const MODULES: [&str; 4] = ["fs", "net", "process", "thread"];
/// Types that read a clock.
const CLOCKS: [&str; 2] = ["Instant", "SystemTime"];
/// Crates that do the same as the modules.
const CRATES: [&str; 4] = ["mio", "nix", "rustix", "socket2"];

/// Finds such names in the sources and manifests of these crates.
pub(super) fn check(files: &[ProductFile<'_>], packages: &[Package]) -> Vec<Violation> {
    let still = files
        .iter()
        .filter(|file| STILL.contains(&file.crate_name()));
    let mut found: Vec<Violation> = still.flat_map(check_file).collect();
    for package in packages {
        let folder = package.name.strip_prefix("thrum-").unwrap_or(&package.name);
        if !STILL.contains(&folder) {
            continue;
        }
        let reaching = package
            .dependencies
            .iter()
            .filter(|used| !used.dev && CRATES.contains(&used.name.as_str()));
        found.extend(reaching.map(|used| violation(&package.manifest, 1, folder, &used.name)));
    }
    found
}

fn check_file(file: &ProductFile<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (at, word) in words(&file.masked) {
        let after = &file.masked[at + word.len()..];
        let named = match word {
            "std" => modules_after(after),
            word if CLOCKS.contains(&word) => vec![word],
            _ => Vec::new(),
        };
        found.extend(named.into_iter().map(|name| {
            let shown = if word == "std" {
                format!("std::{name}")
            } else {
                name.to_owned()
            };
            violation(file.path, file.line(at), file.crate_name(), &shown)
        }));
    }
    found
}

/// The refused modules that a path names after its `std`: `::fs::File`, `::{io, net::Ipv4Addr}`.
fn modules_after(path: &str) -> Vec<&str> {
    let Some(path) = path.trim_start().strip_prefix("::") else {
        return Vec::new();
    };
    let path = path.trim_start();
    let Some(group) = path.strip_prefix('{') else {
        let first = words(path).next().map(|(_, word)| word);
        return first
            .into_iter()
            .filter(|word| MODULES.contains(word))
            .collect();
    };
    let mut depth = 0_u32;
    let mut starts = vec![0];
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => starts.push(at + 1),
            _ => {}
        }
    }
    let firsts = starts
        .into_iter()
        .filter_map(|at| words(&group[at..]).next());
    firsts
        .map(|(_, word)| word)
        .filter(|word| MODULES.contains(word))
        .collect()
}

fn violation(path: &str, line: usize, folder: &str, name: &str) -> Violation {
    let message = format!(
        "`{folder}` only computes, and must not use `{name}`: take the result as an argument, and \
         leave the rest to `bench`"
    );
    Violation::new(path, line, message)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::tidy::product::product_files;
    use crate::workspace::Dependency;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let source = BTreeMap::from([(path.to_owned(), text.to_owned())]);
        let found = check(&product_files(&source), &[]);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn files_sockets_threads_processes_and_clocks_are_refused() {
        for (text, name) in [
            ("use std::fs::File;", "std::fs"),
            ("use std::{io, net::{IpAddr, TcpStream}};", "std::net"),
            ("fn a() { std::thread::yield_now(); }", "std::thread"),
            ("fn a() { std :: process::exit(1); }", "std::process"),
            ("use std::time::{Duration, Instant};", "Instant"),
            ("use std::time; fn a(_: time::SystemTime) {}", "SystemTime"),
        ] {
            let found = findings("crates/load/src/a.rs", &format!("\n{text}\n"));
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            let begin = "crates/load/src/a.rs:2: ";
            assert!(found[0].starts_with(begin), "{found:?}");
            assert!(found[0].contains(&format!("`{name}`")), "{found:?}");
        }
    }

    #[test]
    fn what_only_computes_its_tests_and_other_crates_are_free() {
        let text = "use std::{io, path::Path}; // std::fs\nuse core::net::IpAddr;\n\
                    use std::time::Duration;\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        assert_eq!(findings("crates/load/src/a.rs", text), [""; 0]);
        let text = "use std::fs;\nuse std::time::Instant;\n";
        assert_eq!(findings("crates/load/tests/a.rs", text), [""; 0]);
        assert_eq!(findings("crates/bench/src/a.rs", text), [""; 0]);
    }

    #[test]
    fn a_manifest_with_a_socket_library_is_refused() {
        let package = |name: &str, dependency: &str, dev| Package {
            name: name.to_owned(),
            manifest: "Cargo.toml".to_owned(),
            targets: Vec::new(),
            dependencies: vec![Dependency {
                name: dependency.to_owned(),
                dev,
            }],
        };
        for (name, dependency, dev, refused) in [
            ("thrum-load", "mio", false, 1),
            ("thrum-load", "rustix", false, 1),
            ("thrum-load", "rustix", true, 0),
            ("thrum-load", "serde", false, 0),
            ("thrum-bench", "mio", false, 0),
        ] {
            let found = check(&[], &[package(name, dependency, dev)]);
            assert_eq!(found.len(), refused, "{name} {dependency}");
        }
    }
}
