//! Counters of one connection.

use crate::Time;

/// Message counters of a session's connection, read when it ends. Twelve bytes, because every
/// client has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Start of the connection in whole seconds of the node's clock.
    began: u32,
    /// PUBLISH packets from the client with new messages; saturates.
    pub received: u32,
    /// PUBLISH packets to the client, including retransmissions; saturates.
    pub sent: u32,
}

/// Messages that were sent later than they were delivered to the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentLater {
    /// Number of PUBLISH packets.
    pub messages: u32,
    /// Payload bytes of these packets.
    pub payload_bytes: u64,
}

/// Both counters together, without padding between them.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// Far below its maximum: the bytes are taken whenever the session has written something.
    later_payload_bytes: u32,
    later_messages: u32,
    pub(super) traffic: Traffic,
}

impl Carried {
    /// Records the start of a connection.
    pub(super) fn begin(&mut self, now: Time) {
        self.traffic = Traffic::begins(now);
    }

    /// Counts a PUBLISH with a new message.
    #[inline]
    pub(super) fn received(&mut self) {
        self.traffic.received = self.traffic.received.saturating_add(1);
    }

    /// Counts a PUBLISH if it was encoded; it may have been too large.
    #[inline]
    pub(super) fn sent(&mut self, is_sent: bool) {
        self.traffic.sent = self.traffic.sent.saturating_add(u32::from(is_sent));
    }

    /// Counts a message that was sent later than it was delivered.
    pub(super) fn sent_later(&mut self, payload_bytes: usize) {
        self.sent(true);
        self.later_messages += 1;
        let bytes = u32::try_from(payload_bytes).unwrap_or(u32::MAX);
        self.later_payload_bytes = self.later_payload_bytes.saturating_add(bytes);
    }

    /// Removes and returns the counters that were not taken yet.
    pub(super) fn take_later(&mut self) -> SentLater {
        SentLater {
            messages: core::mem::take(&mut self.later_messages),
            payload_bytes: core::mem::take(&mut self.later_payload_bytes).into(),
        }
    }
}

impl Traffic {
    /// Counters of a connection that starts now.
    fn begins(now: Time) -> Self {
        Self {
            began: u32::try_from(now.as_millis() / 1000).unwrap_or(u32::MAX),
            ..Self::default()
        }
    }

    /// When the connection began, in whole seconds of the node's clock.
    pub fn began(self) -> Time {
        Time::from_millis(u64::from(self.began) * 1000)
    }

    /// Whole seconds since the connection began.
    pub fn seconds(self, now: Time) -> u64 {
        (now.as_millis() / 1000).saturating_sub(self.began.into())
    }
}
