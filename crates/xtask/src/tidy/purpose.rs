//! Requires every Rust file to start with its purpose.

use crate::source::is_rust;
use crate::violation::Violation;

/// Finds a file without a purpose line.
pub(super) fn check(path: &str, text: &str) -> Option<Violation> {
    let says = text.trim_start().starts_with("//! ");
    (is_rust(path) && !says).then(|| {
        Violation::new(
            path,
            1,
            "start the file with a `//!` line that states its purpose",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_begins_with_its_purpose() {
        assert_eq!(check("a.rs", "//! Does one thing.\nfn a() {}"), None);
        assert!(check("a.rs", "use b;\n//! Too late.").is_some());
        assert_eq!(check("a.py", "import b"), None);
    }
}
