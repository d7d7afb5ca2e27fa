//! A message that a session holds: queued, or in flight and possibly to be retransmitted.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::QoS;

use super::delivery_events::Cause;
use super::journal::UNRECORDED;
use super::{DeliveryOptions, GroupId, Seq, StoredDelivery, Taken};
use crate::{Limits, Message, Time};

/// A message with the parameters of its delivery to this session.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) message: Arc<Message>,
    /// Its sequence number in the journal; [`UNRECORDED`] if it is not recorded.
    pub(super) seq: Seq,
    pub(super) identifiers: Identifiers,
    pub(super) group: Option<GroupId>,
    /// Time at which it was delivered to the session, in whole seconds.
    since_secs: u32,
    pub(super) qos: QoS,
    pub(super) retain: bool,
}

/// Memory of a held message beyond its text and its list of identifiers, with the overhead of the
/// allocator: its entry in a list whose first block grows by doubling, and the message as if it
/// were not shared.
pub(super) const ENTRY_BYTES: usize =
    2 * size_of::<Held>() + size_of::<Message>() + 2 * size_of::<usize>() + 2 * ALLOCATION_BYTES;
/// Overhead of the allocator for one allocation.
const ALLOCATION_BYTES: usize = 16;

/// Memory of a held message with this number of subscription identifiers.
pub(super) fn held_bytes(message: &Message, identifiers: usize) -> usize {
    let list = match identifiers {
        0 | 1 => 0,
        many => many * size_of::<u32>() + size_of::<Vec<u32>>() + 2 * ALLOCATION_BYTES,
    };
    ENTRY_BYTES + message.bytes_len() + list
}

impl Held {
    pub(super) fn new(
        message: &Arc<Message>,
        options: &DeliveryOptions<'_>,
        seq: Seq,
        now: Time,
    ) -> Self {
        Self {
            message: Arc::clone(message),
            seq,
            identifiers: Identifiers::new(options.identifiers),
            group: options.group,
            since_secs: whole_secs(now),
            qos: options.qos,
            retain: options.retain,
        }
    }

    /// Restores a persisted delivery; `None` if its message is missing.
    pub(super) fn restore(stored: StoredDelivery, qos: QoS) -> Option<Self> {
        Some(Self {
            message: stored.message?,
            seq: stored.seq,
            identifiers: Identifiers::new(&stored.identifiers),
            group: stored.group,
            since_secs: whole_secs(stored.queued_at),
            qos,
            retain: stored.retain,
        })
    }

    /// When it was delivered to the session, in whole seconds.
    pub(super) fn since(&self) -> Time {
        Time::from_millis(u64::from(self.since_secs) * 1000)
    }

    /// Memory that it occupies.
    pub(super) fn bytes(&self) -> usize {
        held_bytes(&self.message, self.identifiers.as_slice().len())
    }

    /// The parameters of its delivery.
    pub(super) fn options(&self) -> DeliveryOptions<'_> {
        DeliveryOptions {
            qos: self.qos,
            retain: self.retain,
            identifiers: self.identifiers.as_slice(),
            group: self.group,
            is_acknowledged: false,
        }
    }

    /// The cause for which it must no longer be delivered, if any.
    pub(super) fn staleness(&self, limits: &Limits, now: Time) -> Option<Cause> {
        // [MQTT-3.3.2-5]
        if self.message.is_expired(now) {
            return Some(Cause::Expired);
        }
        let age_max = limits.queue.age_max?;
        (self.age_secs(now) > age_max).then_some(Cause::TooOld)
    }

    /// Time since it was delivered to the session, in seconds, rounded up.
    fn age_secs(&self, now: Time) -> u32 {
        whole_secs(now).saturating_sub(self.since_secs)
    }

    /// The message for another member of its shared subscription.
    pub(super) fn into_taken(self) -> Option<Taken> {
        Some(Taken {
            group: self.group?,
            message: self.message,
            seq: Some(self.seq).filter(|seq| *seq != UNRECORDED),
        })
    }
}

fn whole_secs(time: Time) -> u32 {
    u32::try_from(time.as_millis() / 1000).unwrap_or(u32::MAX)
}

/// Subscription identifiers: usually none or one.
#[derive(Debug)]
pub(super) enum Identifiers {
    None,
    One(u32),
    #[expect(
        clippy::box_collection,
        reason = "a rare list behind a thin pointer keeps every held message small"
    )]
    Many(Box<Vec<u32>>),
}

impl Identifiers {
    fn new(identifiers: &[u32]) -> Self {
        match identifiers {
            [] => Self::None,
            [one] => Self::One(*one),
            many => Self::Many(Box::new(many.to_vec())),
        }
    }

    pub(super) fn as_slice(&self) -> &[u32] {
        match self {
            Self::None => &[],
            Self::One(one) => core::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_message_is_small() {
        assert!(size_of::<Held>() <= 48, "{}", size_of::<Held>());
    }

    #[test]
    fn identifiers_keep_their_order() {
        for list in [&[][..], &[7], &[3, 1, 268_435_455]] {
            assert_eq!(Identifiers::new(list).as_slice(), list);
        }
    }
}
