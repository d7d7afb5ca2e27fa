//! Refuses large files, because the history of a repository keeps them forever.

use anyhow::Result;

use crate::violation::Violation;
use crate::workspace::Workspace;

const BYTES_MAX: u64 = 1024 * 1024;

/// Finds files over the limit.
pub(super) fn check(workspace: &Workspace) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for file in &workspace.files {
        found.extend(check_one(
            file,
            std::fs::metadata(workspace.root.join(file))?.len(),
        ));
    }
    Ok(found)
}

fn check_one(file: &str, bytes: u64) -> Option<Violation> {
    (bytes > BYTES_MAX).then(|| {
        let message =
            format!("{bytes} bytes, the limit is {BYTES_MAX}; generate it or fetch it in the test");
        Violation::new(file, 1, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_one_mebibyte() {
        assert_eq!(check_one("a.bin", BYTES_MAX), None);
        assert!(check_one("a.bin", BYTES_MAX + 1).is_some());
    }
}
