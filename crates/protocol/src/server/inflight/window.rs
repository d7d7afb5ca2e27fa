//! Limits of unacknowledged messages in flight to the client.

/// Payload bytes are neither limited nor counted.
const UNLIMITED: i32 = i32::MAX;

/// The remaining room for messages and for their payload bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendWindow {
    /// Payload bytes that may still be sent without an acknowledgement; negative after a message
    /// larger than the remaining room; [`UNLIMITED`] while bytes are not counted.
    bytes_left: i32,
    /// Highest number of unacknowledged messages.
    messages_max: u16,
}

impl Default for SendWindow {
    /// One message of any size.
    fn default() -> Self {
        Self {
            bytes_left: UNLIMITED,
            messages_max: 1,
        }
    }
}

impl SendWindow {
    /// A limit of 2^31 - 1 bytes or more counts as none.
    pub(super) fn new(messages_max: u16, bytes_max: u32) -> Self {
        Self {
            bytes_left: i32::try_from(bytes_max).unwrap_or(UNLIMITED),
            messages_max,
        }
    }

    /// Highest number of unacknowledged messages.
    #[inline]
    pub(super) fn messages_max(self) -> usize {
        usize::from(self.messages_max)
    }

    /// Whether payload bytes are limited.
    #[inline]
    pub(super) fn counts_bytes(self) -> bool {
        self.bytes_left != UNLIMITED
    }

    /// Whether the payload bytes in flight have reached the limit.
    #[inline]
    pub(super) fn is_out_of_bytes(self) -> bool {
        self.bytes_left <= 0
    }

    /// Counts a payload that was sent.
    #[inline]
    pub(super) fn take_bytes(&mut self, bytes: usize) {
        if self.counts_bytes() {
            self.bytes_left = self.bytes_left.saturating_sub(clamped(bytes));
        }
    }

    /// Subtracts a payload that is no longer in flight.
    #[inline]
    pub(super) fn give_back_bytes(&mut self, bytes: usize) {
        if self.counts_bytes() {
            let left = self.bytes_left.saturating_add(clamped(bytes));
            self.bytes_left = left.min(UNLIMITED - 1);
        }
    }
}

fn clamped(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}
