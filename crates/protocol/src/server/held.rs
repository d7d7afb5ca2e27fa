//! A message that a session holds: queued, or inflight and perhaps to be sent again.

use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::QoS;

use super::{DeliveryOptions, GroupId};
use crate::Message;

/// A message with what its delivery to this session needs.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) message: Arc<Message>,
    pub(super) identifiers: Identifiers,
    pub(super) group: Option<GroupId>,
    pub(super) qos: QoS,
    pub(super) retain: bool,
}

impl Held {
    pub(super) fn new(message: &Arc<Message>, options: &DeliveryOptions<'_>) -> Self {
        Self {
            message: Arc::clone(message),
            identifiers: Identifiers::new(options.identifiers),
            group: options.group,
            qos: options.qos,
            retain: options.retain,
        }
    }

    /// Group and message, for another member.
    pub(super) fn into_shared(self) -> Option<(GroupId, Arc<Message>)> {
        Some((self.group?, self.message))
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
    Many(alloc::boxed::Box<Vec<u32>>),
}

impl Identifiers {
    fn new(identifiers: &[u32]) -> Self {
        match identifiers {
            [] => Self::None,
            [one] => Self::One(*one),
            many => Self::Many(alloc::boxed::Box::new(many.to_vec())),
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
        assert!(size_of::<Held>() <= 40, "{}", size_of::<Held>());
    }

    #[test]
    fn identifiers_come_back_in_their_order() {
        for list in [&[][..], &[7], &[3, 1, 268_435_455]] {
            assert_eq!(Identifiers::new(list).as_slice(), list);
        }
    }
}
