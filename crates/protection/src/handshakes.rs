//! Unfinished TLS and WebSocket handshakes of one worker.

/// Counts unfinished handshakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshakes {
    open: u32,
}

impl Handshakes {
    /// Counts a connection that begins its handshake.
    pub fn begin(&mut self) {
        self.open += 1;
    }

    /// Counts a handshake that is complete, has failed or took too long.
    pub fn end(&mut self) {
        debug_assert!(self.open > 0, "every handshake begins before it ends");
        self.open = self.open.saturating_sub(1);
    }

    /// Number of unfinished handshakes.
    pub const fn open(&self) -> u32 {
        self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_counts_as_open_from_its_start_to_its_end() {
        let mut handshakes = Handshakes::default();
        assert_eq!(handshakes.open(), 0);
        handshakes.begin();
        handshakes.begin();
        assert_eq!(handshakes.open(), 2);
        handshakes.end();
        assert_eq!(handshakes.open(), 1);
        handshakes.end();
        assert_eq!(handshakes.open(), 0);
    }
}
