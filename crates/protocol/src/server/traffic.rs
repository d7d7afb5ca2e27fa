//! What one connection has carried.

use crate::Time;

/// The messages of a session's connection, for whoever asks when it ends. Twelve bytes: each client
/// has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Whole seconds of the node's clock.
    began: u32,
    /// PUBLISH packets from the client whose messages were new; ends at the highest number.
    pub received: u32,
    /// PUBLISH packets to the client, those that were sent again among them; ends at the highest
    /// number.
    pub sent: u32,
}

/// Messages that were not sent when they were delivered to the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentLater {
    /// PUBLISH packets.
    pub messages: u32,
    /// Their payload in bytes.
    pub payload_bytes: u64,
}

/// Both together, without a gap between them.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// Far from its end: they are taken whenever the session has written something.
    later_payload_bytes: u32,
    later_messages: u32,
    pub(super) traffic: Traffic,
}

impl Carried {
    /// A connection begins.
    pub(super) fn begin(&mut self, now: Time) {
        self.traffic = Traffic::begins(now);
    }

    /// A PUBLISH with a new message came.
    #[inline]
    pub(super) fn received(&mut self) {
        self.traffic.received = self.traffic.received.saturating_add(1);
    }

    /// A PUBLISH was encoded, or was too large to be.
    #[inline]
    pub(super) fn sent(&mut self, is_sent: bool) {
        self.traffic.sent = self.traffic.sent.saturating_add(u32::from(is_sent));
    }

    /// A message was sent that was not when it was delivered.
    pub(super) fn sent_later(&mut self, payload_bytes: usize) {
        self.sent(true);
        self.later_messages += 1;
        let bytes = u32::try_from(payload_bytes).unwrap_or(u32::MAX);
        self.later_payload_bytes = self.later_payload_bytes.saturating_add(bytes);
    }

    /// Those that were not taken yet.
    pub(super) fn take_later(&mut self) -> SentLater {
        SentLater {
            messages: core::mem::take(&mut self.later_messages),
            payload_bytes: core::mem::take(&mut self.later_payload_bytes).into(),
        }
    }
}

impl Traffic {
    /// Of a connection that begins.
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
