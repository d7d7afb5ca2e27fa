//! The first lines of a library: its invariant and, for a pure crate, the attributes that exclude
//! I/O and unsafe code.

use crate::tidy::layers;
use crate::violation::Violation;

/// Finds missing parts of a `lib.rs`.
pub(super) fn check(path: &str, text: &str) -> Vec<Violation> {
    let Some(folder) = path
        .strip_prefix("crates/")
        .and_then(|rest| rest.strip_suffix("/src/lib.rs"))
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let header = text.lines().filter(|line| line.starts_with("//!"));
    if !header.clone().any(|line| line.contains("Invariant")) {
        found.push(Violation::new(
            path,
            1,
            "the `//!` header lacks a line `Invariant: …` for the whole crate",
        ));
    }
    if layers::is_pure(folder) {
        for (attribute, effect) in [
            ("no_std", "reach no socket and no clock"),
            ("forbid(unsafe_code)", "keep memory safe"),
        ] {
            if !text
                .lines()
                .any(|line| line.starts_with("#![") && line.contains(attribute))
            {
                found.push(Violation::new(
                    path,
                    1,
                    format!("a pure crate has `#![{attribute}]`, to {effect}"),
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pure_crate_has_an_invariant_and_two_attributes() {
        let whole =
            "//! Matches topics.\n//! Invariant: no I/O.\n#![no_std]\n#![forbid(unsafe_code)]\n";
        assert_eq!(check("crates/routing/src/lib.rs", whole), []);
        assert_eq!(
            check("crates/routing/src/lib.rs", "//! Matches topics.\n").len(),
            3
        );
    }

    #[test]
    fn a_crate_at_the_edge_has_std() {
        assert_eq!(
            check(
                "crates/broker/src/lib.rs",
                "//! One node.\n//! Invariant: bounded queues.\n"
            ),
            []
        );
        assert_eq!(check("crates/broker/src/worker.rs", ""), []);
    }
}
