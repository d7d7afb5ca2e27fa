//! Refuses module names that do not describe the content.

use crate::violation::Violation;

const BANNED: [&str; 5] = ["utils", "common", "helpers", "types", "manager"];

/// Finds a file or folder with such a name.
pub(super) fn check(path: &str) -> Option<Violation> {
    let mut parts = path.strip_suffix(".rs")?.split('/');
    let name = parts.find(|part| BANNED.contains(part))?;
    let message = format!("`{name}` does not describe the content; name the module after it");
    Some(Violation::new(path, 1, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_are_named_after_their_content() {
        assert!(check("crates/a/src/utils.rs").is_some());
        assert!(check("crates/a/tests/common/mod.rs").is_some());
        assert_eq!(check("crates/a/src/packet_types.rs"), None);
        assert_eq!(check("crates/a/common/notes.md"), None);
    }
}
