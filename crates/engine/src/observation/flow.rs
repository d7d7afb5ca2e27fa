//! What is counted at a node of the tree of topics.

use thrum_protocol::Time;

use super::window::Window;

/// Messages since the observation began.
#[derive(Clone, Copy, Debug, Default)]
pub struct TopicFlow {
    /// Messages.
    pub messages: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// When the last one came.
    pub last: Time,
    rate: Window,
    byte_rate: Window,
}

impl TopicFlow {
    #[inline]
    pub(super) fn add(&mut self, bytes: usize, now: Time) {
        self.messages += 1;
        self.payload_bytes += bytes as u64;
        self.last = now;
        self.rate.add(now, 1);
        self.byte_rate
            .add(now, u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// Messages and bytes per second, of what was counted since `began`.
    pub fn rates(&self, now: Time, began: Time) -> (f64, f64) {
        (
            self.rate.per_second(now, began),
            self.byte_rate.per_second(now, began),
        )
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            payload_bytes: self.payload_bytes + other.payload_bytes,
            last: self.last.max(other.last),
            rate: self.rate.plus(other.rate),
            byte_rate: self.byte_rate.plus(other.byte_rate),
        }
    }
}
