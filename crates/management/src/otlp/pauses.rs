//! Pauses before a request is repeated: each twice as long as the one before, and a part of each at
//! random, so that brokers that lost a collector together do not come back to it together.

use std::time::Duration;

/// The longest pause: a collector that is back is found within a minute.
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// The longest pause that a collector can ask for.
const ASKED_MAX: Duration = Duration::from_mins(5);

/// The pauses of one signal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pauses {
    first: Duration,
    next: Duration,
}

impl Pauses {
    pub(super) const fn new(first: Duration) -> Self {
        Self { first, next: first }
    }

    /// A request was answered.
    pub(super) const fn reset(&mut self) {
        self.next = self.first;
    }

    /// The pause before the next request; `asked` is what the collector asks for, and `chance` a
    /// random number, which takes up to a half of the pause away.
    pub(super) fn next(&mut self, asked: Option<Duration>, chance: u8) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(PAUSE_MAX);
        let pause = whole.saturating_sub(whole / 2 * u32::from(chance) / 255);
        // What the collector asks for is not shortened.
        pause.max(asked.unwrap_or_default().min(ASKED_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn pauses_grow_up_to_a_minute_and_begin_again_after_an_answer() {
        let mut pauses = Pauses::new(SECOND);
        let all: Vec<u64> = (0..8).map(|_| pauses.next(None, 0).as_secs()).collect();
        assert_eq!(all, [1, 2, 4, 8, 16, 32, 60, 60]);
        pauses.reset();
        assert_eq!(pauses.next(None, 0), SECOND);
    }

    #[test]
    fn chance_takes_at_most_a_half_of_a_pause_away() {
        for chance in 0..=255 {
            let pause = Pauses::new(SECOND).next(None, chance);
            assert!(SECOND / 2 <= pause && pause <= SECOND, "{pause:?}");
        }
        assert_eq!(Pauses::new(SECOND).next(None, 255), SECOND / 2);
    }

    #[test]
    fn a_collector_can_ask_for_a_longer_pause_within_a_limit() {
        let mut pauses = Pauses::new(SECOND);
        assert_eq!(pauses.next(Some(SECOND * 30), 255), SECOND * 30);
        assert_eq!(pauses.next(Some(SECOND * 1_000_000), 0), ASKED_MAX);
    }
}
