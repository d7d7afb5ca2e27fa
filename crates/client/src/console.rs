//! Messages to the user, on standard error; standard output is for the requested data.

use std::io::Write as _;

/// The verbosity that the user chose.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Console {
    /// No warnings.
    pub(crate) quiet: bool,
    /// Every packet.
    pub(crate) debug: bool,
}

impl Console {
    /// A problem that does not end the program.
    pub(crate) fn warn(self, message: &str) {
        if !self.quiet {
            // Without standard error the text has no receiver.
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
