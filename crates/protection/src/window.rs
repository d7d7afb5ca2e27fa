//! Counting events in a time window.

use std::time::Duration;

use thrum_protocol::Time;

/// A count that begins with the first event, and restarts once its time has passed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    since: Time,
    count: u32,
}

impl Window {
    /// Counts one more event; returns the count in this window.
    pub(crate) fn count(&mut self, now: Time, span: Duration) -> u32 {
        if self.count == 0 || now.since(self.since) >= span {
            *self = Self {
                since: now,
                count: 0,
            };
        }
        self.count = self.count.saturating_add(1);
        self.count
    }

    /// Resets the count.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_begins_with_the_first_event() {
        let (mut window, span) = (Window::default(), Duration::from_secs(10));
        let mut count = |millis| window.count(Time::from_millis(millis), span);
        assert_eq!([count(5000), count(5000), count(14_999)], [1, 2, 3]);
        assert_eq!([count(15_000), count(24_999), count(60_000)], [1, 2, 1]);
    }
}
