//! Showing the same list again and again.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

/// Moves to the top and clears the screen.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J\u{1b}[3J";

/// Standard output over time.
#[derive(Debug)]
pub(super) struct Screen {
    is_terminal: bool,
    is_first: bool,
}

impl Screen {
    pub(super) fn new() -> Self {
        Self {
            is_terminal: std::io::stdout().is_terminal(),
            is_first: true,
        }
    }

    /// Draws over the last text on a terminal; elsewhere the next block follows an empty line.
    pub(super) fn show(&mut self, text: &str) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        if self.is_terminal {
            out.write_all(CLEAR.as_bytes())?;
        } else if !self.is_first {
            out.write_all(b"\n")?;
        }
        self.is_first = false;
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

/// Waits; a signal ends the program meanwhile.
#[expect(
    clippy::disallowed_methods,
    reason = "a command has nothing else to do until then"
)]
pub(super) fn wait(interval: Duration) {
    std::thread::sleep(interval);
}
