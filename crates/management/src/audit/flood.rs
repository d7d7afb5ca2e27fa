//! Refusals that are written down: anybody can cause any number of them, and each costs a write.

use std::time::Duration;

/// Refusals that are written down at once.
const BURST: u32 = 60;
/// Time in which one more is: 8,640 a day, about 3 MB, of the 64 MiB of the log.
const RATE: Duration = Duration::from_secs(10);

/// How many refusals may be written down now.
#[derive(Debug, Default)]
pub(super) struct Flood {
    /// When all of them so far would have been due at [`RATE`].
    due: Duration,
    left_out: u64,
}

impl Flood {
    /// The number of those that were left out before this one, which is written down; none if this
    /// one is left out as well.
    pub(super) fn admit(&mut self, now: Duration) -> Option<u64> {
        if self.due > now + RATE * (BURST - 1) {
            self.left_out += 1;
            return None;
        }
        self.due = self.due.max(now) + RATE;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_written_down_at_a_rate_and_its_number_is_known() {
        let mut flood = Flood::default();
        let mut written = 0;
        let mut counted = 0;
        for millis in 0..100_000 {
            if let Some(left_out) = flood.admit(Duration::from_millis(millis)) {
                written += 1;
                counted += left_out + 1;
            }
        }
        assert_eq!(written, 60 + 9);
        let last = flood.admit(Duration::from_secs(110)).unwrap();
        assert_eq!(counted + last, 100_000);
    }
}
