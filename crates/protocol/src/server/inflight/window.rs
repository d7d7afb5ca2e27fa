//! How much may be on its way to the client without an answer.

/// Bytes of payload are not limited, and not counted.
const UNLIMITED: i32 = i32::MAX;

/// The room for messages and for bytes of their payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendWindow {
    /// Bytes of payload that may still be on their way to the client, less than 0 behind a message
    /// that was larger than what was left; [`UNLIMITED`] while nothing is counted.
    bytes_left: i32,
    /// Most unacknowledged messages.
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
    /// 2^31 - 1 bytes and more are no limit.
    pub(super) fn new(messages_max: u16, bytes_max: u32) -> Self {
        Self {
            bytes_left: i32::try_from(bytes_max).unwrap_or(UNLIMITED),
            messages_max,
        }
    }

    /// Most unacknowledged messages.
    #[inline]
    pub(super) fn messages_max(self) -> usize {
        usize::from(self.messages_max)
    }

    /// Bytes of payload are limited.
    #[inline]
    pub(super) fn counts_bytes(self) -> bool {
        self.bytes_left != UNLIMITED
    }

    /// So many bytes of payload are on their way as may be.
    #[inline]
    pub(super) fn is_out_of_bytes(self) -> bool {
        self.bytes_left <= 0
    }

    /// A payload is on its way.
    #[inline]
    pub(super) fn take_bytes(&mut self, bytes: usize) {
        if self.counts_bytes() {
            self.bytes_left = self.bytes_left.saturating_sub(clamped(bytes));
        }
    }

    /// A payload is no longer on its way.
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
