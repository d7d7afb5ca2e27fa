//! Limits the length of files, so that each can be read in one sitting.

use crate::violation::Violation;

/// Hard limit including tests; the aim is 400 without tests.
const LINES_MAX: usize = 700;

/// Finds overlong files.
pub(super) fn check(path: &str, text: &str) -> Option<Violation> {
    let lines = text.lines().count();
    (lines > LINES_MAX).then(|| {
        let message = format!("{lines} lines, the limit is {LINES_MAX}; split it by purpose");
        Violation::new(path, LINES_MAX + 1, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_is_allowed() {
        assert_eq!(check("a.rs", &"\n".repeat(LINES_MAX)), None);
        assert!(check("a.rs", &"\n".repeat(LINES_MAX + 1)).is_some());
    }
}
