//! Mail between the engines of a node.

use std::sync::Arc;

use thrum_codec::QoS;
use thrum_protocol::Message;
use thrum_protocol::server::GroupId;

use crate::durable::Origin;
use crate::ids::ConnectionId;
use crate::inquiries::{Inquiry, RemoteReports};
use crate::interest::SessionRef;
use crate::queue_room::{Promise, QueueRoom, Shortage};
use crate::stages::Stamp;

/// One piece of mail from one engine to another.
#[derive(Debug)]
pub enum EngineMail {
    /// A message for the matching subscriptions of the receiving worker.
    Publish(PublishDelivery),
    /// A message for a session that was chosen from a shared group.
    Shared(SharedDelivery),
    /// A queue has room that publishers of the receiving worker wait for.
    Room(Shortage, Arc<QueueRoom>),
    /// A publisher found the queue of this session full.
    Full(SessionRef),
    /// A question whether the receiving worker has memory for a message.
    Inquiry(Inquiry),
    /// All workers have answered the inquiry about the PUBLISH of this connection.
    InquiryAnswered(ConnectionId),
}

/// A message for the subscriptions of one worker.
#[derive(Debug)]
pub struct PublishDelivery {
    /// The message.
    pub message: Arc<Message>,
    /// The place of the message in the storage, which is removed when its receivers have stored the
    /// message; none if it is not stored.
    pub origin: Option<Origin>,
    /// Reserved places in the queues of sessions that are nearly full.
    pub promises: Vec<Promise>,
    /// Generation of the table of interest that the sender used
    /// ([`Version::generation`](crate::interest::changes::Version::generation)).
    pub generation: u64,
    /// The publisher is told that a session of the receiving worker accepts the message.
    pub must_be_taken: bool,
    /// Reports about the messages of the publisher; none while there is enough memory.
    pub reports: Option<Arc<RemoteReports>>,
    /// The times of a stamped message; none for most messages.
    pub stamp: Option<Box<Stamp>>,
}

impl PublishDelivery {
    /// Whether a place in the queue of a session is reserved for the message.
    pub(crate) fn is_promised_to(&self, session: u64) -> bool {
        let mut promises = self.promises.iter();
        promises.any(|promise| promise.session() == session)
    }
}

/// A message for one member of a shared group, whose publisher was told that it is accepted.
#[derive(Debug)]
pub struct SharedDelivery {
    /// The session of the member.
    pub to: SessionRef,
    /// The group that the member was chosen from.
    pub group: GroupId,
    /// The message.
    pub message: Arc<Message>,
    /// The quality of service of the delivery.
    pub qos: QoS,
    /// The RETAIN flag of the delivery.
    pub retain: bool,
    /// The subscription identifier of the member, if any.
    pub identifier: Option<u32>,
    /// The place of the message in the storage, which is removed when the member has stored the
    /// message; none if it is not stored.
    pub origin: Option<Origin>,
    /// The reserved place in the member's queue; none unless the queue is nearly full.
    pub promise: Option<Promise>,
    /// Reports about the messages of the publisher; none while there is enough memory.
    pub reports: Option<Arc<RemoteReports>>,
    /// The times of a stamped message; none for most messages.
    pub stamp: Option<Box<Stamp>>,
}

impl EngineMail {
    /// Length in bytes of the message that the mail contains; 0 if it contains none.
    #[inline]
    pub fn bytes_len(&self) -> usize {
        match self {
            Self::Publish(delivery) => delivery.message.bytes_len(),
            Self::Shared(delivery) => delivery.message.bytes_len(),
            Self::Room(..) | Self::Full(_) | Self::Inquiry(_) | Self::InquiryAnswered(_) => 0,
        }
    }
}
