//! Delays before a lost connection is made again.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// Waits that double up to half a minute.
#[derive(Debug)]
pub(super) struct Retry {
    next: Duration,
}

impl Retry {
    pub(super) const fn new() -> Self {
        Self { next: FIRST }
    }

    /// The wait before the next attempt.
    pub(super) fn wait(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(LONGEST);
        wait
    }

    /// An attempt succeeded.
    pub(super) const fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_half_a_minute_and_reset_after_success() {
        let mut retry = Retry::new();
        let waits: Vec<u64> = (0..7).map(|_| retry.wait().as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        retry.reset();
        assert_eq!(retry.wait().as_secs(), 1);
    }
}
