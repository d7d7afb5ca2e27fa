//! Messages to the user, on standard error; standard output is for what was asked for.

use std::io::Write as _;

/// What the user wants to be told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Console {
    /// No warnings.
    pub(crate) quiet: bool,
    /// Every packet.
    pub(crate) debug: bool,
}

impl Console {
    /// Something is not as it should be, but goes on.
    pub(crate) fn warn(self, message: &str) {
        if !self.quiet {
            // Without a standard error there is nobody left to tell.
            writeln!(std::io::stderr(), "warning: {message}").ok();
        }
    }

    /// A detail for `-d`.
    pub(crate) fn debug(self, message: impl FnOnce() -> String) {
        if self.debug {
            writeln!(std::io::stderr(), "debug: {}", message()).ok();
        }
    }
}
