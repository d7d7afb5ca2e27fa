//! What the engines of a node send each other.

use std::sync::Arc;

use thrum_codec::QoS;
use thrum_protocol::Message;
use thrum_protocol::server::GroupId;

use crate::durable::Origin;
use crate::elsewhere::{Heard, Inquiry};
use crate::ids::ConnectionId;
use crate::interest::SessionRef;
use crate::queue_room::{Promise, QueueRoom, Shortage};

/// One piece of mail from one engine to another.
#[derive(Debug)]
pub enum EngineMail {
    /// Deliver to every matching subscription of the worker.
    Publish(PublishDelivery),
    /// Deliver to the session that was picked from a shared group.
    Shared(SharedDelivery),
    /// There is room that publishers of the receiver wait for.
    Room(Shortage, Arc<QueueRoom>),
    /// Somebody found the queue of this session full.
    Full(SessionRef),
    /// Say whether there is memory for a message.
    Inquiry(Inquiry),
    /// All have answered what this connection wants to publish.
    Heard(ConnectionId),
}

/// A message for the subscriptions of one worker.
#[derive(Debug)]
pub struct PublishDelivery {
    /// The message.
    pub message: Arc<Message>,
    /// The place on the disk that it leaves when its sessions have the message.
    pub origin: Option<Origin>,
    /// Room in the queues of sessions that are nearly full.
    pub promises: Vec<Promise>,
    /// What its sender knew of the queues here
    /// ([`Version::generation`](crate::interest::changes::Version::generation)).
    pub generation: u64,
    /// Its publisher is told that somebody here takes it.
    pub must_be_taken: bool,
    /// Where its publisher learns what became of it, while memory is low.
    pub heard: Option<Arc<Heard>>,
}

impl PublishDelivery {
    /// There is room for it in the queue of that session.
    pub(crate) fn is_promised_to(&self, session: u64) -> bool {
        let mut promises = self.promises.iter();
        promises.any(|promise| promise.session() == session)
    }
}

/// A message for one member of a shared group, whose publisher was told that it is taken.
#[derive(Debug)]
pub struct SharedDelivery {
    /// The member.
    pub to: SessionRef,
    /// The group that it was picked from.
    pub group: GroupId,
    /// The message.
    pub message: Arc<Message>,
    /// The quality of service that the member gets it with.
    pub qos: QoS,
    /// It is marked as retained.
    pub retain: bool,
    /// The identifier of the subscription.
    pub identifier: Option<u32>,
    /// The place on the disk that it leaves.
    pub origin: Option<Origin>,
    /// Room in the member's queue, if that is nearly full.
    pub promise: Option<Promise>,
    /// Where its publisher learns what became of it, while memory is low.
    pub heard: Option<Arc<Heard>>,
}

impl EngineMail {
    /// Bytes of the message that it holds.
    #[inline]
    pub fn bytes_len(&self) -> usize {
        match self {
            Self::Publish(delivery) => delivery.message.bytes_len(),
            Self::Shared(delivery) => delivery.message.bytes_len(),
            Self::Room(..) | Self::Full(_) | Self::Inquiry(_) | Self::Heard(_) => 0,
        }
    }
}
