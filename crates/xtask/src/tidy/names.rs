//! Names that say nothing about what a module holds.

use crate::source::{is_rust, line_at, mask};
use crate::violation::Violation;

const BANNED: [&str; 5] = ["utils", "common", "helpers", "types", "manager"];

/// Finds a module, file or folder with such a name.
pub(super) fn check(path: &str, text: &str) -> Vec<Violation> {
    if !is_rust(path) {
        return Vec::new();
    }
    let message =
        |name: &str| format!("`{name}` says nothing; name the module after what it holds");
    let mut found: Vec<Violation> = path
        .trim_end_matches(".rs")
        .split('/')
        .filter(|part| BANNED.contains(part))
        .map(|part| Violation::new(path, 1, message(part)))
        .collect();
    let code = mask(text);
    for name in BANNED {
        let inline = format!("mod {name} {{");
        found.extend(
            code.match_indices(&inline)
                .map(|(offset, _)| Violation::new(path, line_at(text, offset), message(name))),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_folders_and_inline_modules_are_named_after_what_they_hold() {
        assert_eq!(check("crates/a/src/utils.rs", "").len(), 1);
        assert_eq!(check("crates/a/tests/common/mod.rs", "").len(), 1);
        assert_eq!(check("crates/a/src/lib.rs", "\nmod helpers {\n}").len(), 1);
        assert_eq!(check("crates/a/src/packet_types.rs", "mod topic;"), []);
    }
}
