//! A crate with benchmarks takes the flags of criterion: no other harness of it is run by `cargo bench`.

use crate::violation::Violation;

/// Finds a crate whose library is run by `cargo bench` beside its benchmarks.
pub(super) fn check(path: &str, text: &str) -> Option<Violation> {
    let has_benches = path.ends_with("Cargo.toml") && text.contains("\n[[bench]]");
    let library = text.split("\n[").find(|table| table.starts_with("lib]"));
    let is_left_out = library.is_some_and(|table| table.contains("\nbench = false"));
    (has_benches && !is_left_out).then(|| {
        let message =
            "give `[lib]` `bench = false`: its test harness refuses the flags of criterion";
        Violation::new(path, 1, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_with_benchmarks_takes_the_flags_of_criterion() {
        let manifest = |library: &str| format!("[package]\n{library}\n[[bench]]\nname = \"b\"\n");
        assert!(check("crates/a/Cargo.toml", &manifest("")).is_some());
        assert!(check("crates/a/Cargo.toml", &manifest("[lib]\nbench = true\n")).is_some());
        assert_eq!(
            check("crates/a/Cargo.toml", &manifest("[lib]\nbench = false\n")),
            None
        );
        assert_eq!(check("crates/a/Cargo.toml", "[package]\n"), None);
    }
}
