//! Files stay short enough to be read in one sitting.

use crate::violation::Violation;

/// Hard limit, tests included; the aim is 400 without tests.
const LINES_MAX: usize = 700;

/// Finds a file that has grown too long.
pub(super) fn check(path: &str, text: &str) -> Option<Violation> {
    let lines = text.lines().count();
    (lines > LINES_MAX).then(|| {
        let message =
            format!("{lines} lines, the limit is {LINES_MAX}; split it along its purposes");
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
