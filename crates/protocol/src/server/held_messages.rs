//! The messages that a session holds for its client, as an operator sees them.

use alloc::sync::Arc;

use thrum_codec::{PacketId, QoS};

use super::held::Held;
use super::inflight::Kept;
use super::{Awaiting, GroupId, Outbound};
use crate::{Message, Time};

/// Entries in flight that are searched for the oldest message whose time is known. The first one
/// nearly always is: only messages of other kinds can precede it.
const SEARCHED_MAX: usize = 64;

/// A message that the session holds for its client.
#[derive(Clone, Copy, Debug)]
pub struct HeldMessage<'a> {
    /// How far its delivery is.
    pub stage: HeldStage,
    /// The message and its delivery; none if the session did not keep it: it was sent, and will not
    /// be sent again.
    pub kept: Option<KeptMessage<'a>>,
}

/// A message with the parameters of its delivery.
#[derive(Clone, Copy, Debug)]
pub struct KeptMessage<'a> {
    /// The message.
    pub message: &'a Arc<Message>,
    /// Quality of service of the delivery.
    pub qos: QoS,
    /// Retain flag of the delivery.
    pub retain: bool,
    /// Shared group that the session was chosen of.
    pub group: Option<GroupId>,
    /// When the session got it, in whole seconds.
    pub since: Time,
}

/// How far a delivery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldStage {
    /// It waits to be sent.
    Queued,
    /// It was sent, possibly on an earlier connection, and the answer of the client is expected.
    Sent {
        /// Its packet identifier.
        packet_id: PacketId,
        /// The answer.
        awaiting: Awaiting,
    },
}

/// Since when the oldest messages wait, in whole seconds; none if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oldest {
    /// When the oldest queued message was queued.
    pub queued: Option<Time>,
    /// When the session got the oldest message that was sent and not acknowledged. None also if the
    /// session keeps no copy of it, as sessions do that end with their connection.
    pub unacknowledged: Option<Time>,
}

impl Outbound {
    /// Every message, those in flight first and then the queue in the order in which it is sent,
    /// except that those with `QoS` 0 are the last of their priority.
    pub fn held_messages(&self) -> impl Iterator<Item = HeldMessage<'_>> {
        let inflight = self.inflight.iter();
        let sent = inflight.map(|(packet_id, awaiting, kept)| HeldMessage {
            stage: HeldStage::Sent {
                packet_id,
                awaiting,
            },
            kept: kept.and_then(held_of).map(KeptMessage::of),
        });
        let queued = self.queue.iter().map(|held| HeldMessage {
            stage: HeldStage::Queued,
            kept: Some(KeptMessage::of(held)),
        });
        sent.chain(queued)
    }

    /// Since when the oldest messages wait.
    pub fn oldest(&self) -> Oldest {
        let mut inflight = self.inflight.iter().take(SEARCHED_MAX);
        let unacknowledged = inflight.find_map(|(_, _, kept)| held_of(kept?));
        Oldest {
            queued: self.queue.oldest_since(),
            unacknowledged: unacknowledged.map(Held::since),
        }
    }
}

impl<'a> KeptMessage<'a> {
    fn of(held: &'a Held) -> Self {
        Self {
            message: &held.message,
            qos: held.qos,
            retain: held.retain,
            group: held.group,
            since: held.since(),
        }
    }
}

fn held_of(kept: &Kept) -> Option<&Held> {
    match kept {
        Kept::Message(held) => Some(held),
        Kept::Nothing | Kept::Released(_) => None,
    }
}
