//! A message that a session holds: queued, or inflight and perhaps to be sent again.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::QoS;

use super::journal::UNNOTED;
use super::{DeliveryOptions, GroupId, Seq, Taken};
use crate::Message;

/// A message with what its delivery to this session needs.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) message: Arc<Message>,
    /// Its place in the journal, [`UNNOTED`] in none.
    pub(super) seq: Seq,
    pub(super) identifiers: Identifiers,
    pub(super) group: Option<GroupId>,
    pub(super) qos: QoS,
    pub(super) retain: bool,
}

impl Held {
    pub(super) fn new(message: &Arc<Message>, options: &DeliveryOptions<'_>, seq: Seq) -> Self {
        Self {
            message: Arc::clone(message),
            seq,
            identifiers: Identifiers::new(options.identifiers),
            group: options.group,
            qos: options.qos,
            retain: options.retain,
        }
    }

    /// What another member of its group needs.
    pub(super) fn into_taken(self) -> Option<Taken> {
        Some(Taken {
            group: self.group?,
            message: self.message,
            seq: Some(self.seq).filter(|seq| *seq != UNNOTED),
        })
    }
}

/// Subscription identifiers: most often none or one.
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
    pub(super) fn new(identifiers: &[u32]) -> Self {
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
    fn identifiers_come_back_in_their_order() {
        for list in [&[][..], &[7], &[3, 1, 268_435_455]] {
            assert_eq!(Identifiers::new(list).as_slice(), list);
        }
    }
}
