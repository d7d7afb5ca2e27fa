//! Types exchanged between a session and the node: the results of a packet, a delivery, the end of
//! a connection and a deadline.

use alloc::rc::Rc;
use alloc::sync::Arc;

use thrum_codec::QoS;
use thrum_codec::packet::{Auth, Publish, Subscribe, Unsubscribe};

use super::Seq;
use crate::Message;

/// Number of a shared subscription on the node.
pub type GroupId = u32;

/// The action that one packet requires of the node. Replies are already in the output buffer.
#[derive(Debug)]
pub enum Action<'p> {
    /// Nothing except the replies.
    None,
    /// Route this message, then call [`Session::publish_done`](super::Session::publish_done).
    Publish {
        /// The packet; its topic is empty if `alias` holds it.
        publish: Publish<'p>,
        /// Topic from the alias table.
        alias: Option<Rc<str>>,
    },
    /// Subscribe to each filter, then call [`Link::suback`](super::Link::suback) with one code per
    /// filter.
    Subscribe(Subscribe<'p>),
    /// Unsubscribe from each filter, then call [`Link::unsuback`](super::Link::unsuback).
    Unsubscribe(Unsubscribe<'p>),
    /// The client sent DISCONNECT: close the connection, then call
    /// [`Session::connection_lost`](super::Session::connection_lost).
    Disconnected,
    /// The client starts a re-authentication (0x19) or continues it (0x18): call
    /// [`Link::authenticate_continue`](super::Link::authenticate_continue) or
    /// [`Link::authenticate_done`](super::Link::authenticate_done), or
    /// [`Session::disconnect`](super::Session::disconnect) and close. Until then the client's
    /// permissions do not change.
    Authenticate(Auth<'p>),
}

/// Parameters of the delivery of one message to one session.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryOptions<'a> {
    /// The lower QoS of message and subscription.
    pub qos: QoS,
    /// Retain flag to send.
    pub retain: bool,
    /// Subscription identifiers of the matched subscriptions.
    pub identifiers: &'a [u32],
    /// Shared subscription that the session was chosen for; its message is kept until acknowledged,
    /// so that another member can get it.
    pub group: Option<GroupId>,
    /// Whether the publisher has an acknowledgement for this delivery: a full queue accepts the
    /// message beyond its limits.
    pub is_acknowledged: bool,
}

/// Result of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// The message is in the output buffer.
    Sent,
    /// The message is in the session's queue.
    Queued,
    /// The message was not delivered.
    Dropped(DropReason),
}

/// Reason why a message was not delivered to one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The queue was full, by number of messages or bytes.
    QueueFull,
    /// The message was dropped from a full queue to make room for another.
    QueueDropped,
    /// The message was in the queue for longer than the limit.
    QueueAge,
    /// A message with `QoS` 0 while the client is disconnected (unless these are queued), or any
    /// message after the end of a session without expiry.
    Offline,
    /// A message with `QoS` 0 while the output is congested.
    SlowConsumer,
    /// The message exceeds the client's maximum packet size.
    TooLarge,
    /// The message expiry has passed.
    Expired,
    /// The topic is outside of the connection's mount point, so the client cannot see it: the
    /// session had another mount point when it subscribed.
    OutsideMount,
    /// The queued message may no longer be delivered to the client.
    NotAllowed,
    /// The message would have to be queued, and the node is short of memory.
    MemoryShort,
}

/// Parts of the CONNACK that the node supplies.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnAckParts<'a> {
    /// Whether the node kept a session for this client.
    pub session_present: bool,
    /// Sent if the client asked for response information.
    pub response_information: Option<&'a str>,
    /// Last step of enhanced authentication; omitted without a method, and if it exceeds the
    /// client's maximum packet size.
    pub authentication_data: Option<&'a [u8]>,
}

/// Remaining actions for the node after the end of a connection.
#[derive(Debug, Default)]
pub struct ConnectionEnd {
    /// Will to publish now.
    pub will: Option<Message>,
    /// The session ended with the connection: remove it and its subscriptions.
    pub session_ended: bool,
}

/// A message of a shared subscription to be given to another member.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The shared subscription.
    pub group: GroupId,
    /// The message.
    pub message: Arc<Message>,
    /// Its sequence number, if it was persisted: no [`Step::Removed`](super::Step::Removed) is
    /// recorded for it, so that the caller can move it.
    pub seq: Option<Seq>,
}

/// Result of a deadline.
#[derive(Debug)]
pub enum Timeout {
    /// No deadline has passed.
    Pending,
    /// No packet arrived for one and a half times the keep alive: close with 0x8D.
    KeepAlive,
    /// The time given to [`Link::set_valid_until`](super::Link::set_valid_until) has passed: close
    /// with 0x87.
    NotAuthorized,
    /// The delayed will is due.
    Will(Message),
    /// The session expired (its will, if still pending, is due too).
    Expired(Option<Message>),
}
