//! Unfinished TLS and WebSocket handshakes of one worker.

/// Counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshakes {
    open: u32,
}

impl Handshakes {
    /// A connection begins its handshake.
    pub fn begin(&mut self) {
        self.open += 1;
    }

    /// It is done, failed or took too long.
    pub fn end(&mut self) {
        debug_assert!(self.open > 0, "every handshake begins before it ends");
        self.open = self.open.saturating_sub(1);
    }

    /// How many there are.
    pub const fn open(&self) -> u32 {
        self.open
    }

    /// Whether another connection has to wait in the backlog (`limits.handshakes`); 0 is no limit.
    pub const fn are_full(&self, handshakes_max: u32) -> bool {
        handshakes_max > 0 && self.open >= handshakes_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_and_no_more_begin_at_a_time() {
        let mut handshakes = Handshakes::default();
        handshakes.begin();
        assert!(!handshakes.are_full(2));
        handshakes.begin();
        assert!(handshakes.are_full(2));
        assert!(!handshakes.are_full(0));
        handshakes.end();
        assert_eq!((handshakes.are_full(2), handshakes.open()), (false, 1));
    }
}
