//! What goes between a session and the node: what to do because of a packet, a delivery, an end or
//! a deadline.

use alloc::rc::Rc;
use alloc::sync::Arc;

use thrum_codec::QoS;
use thrum_codec::packet::{Auth, Publish, Subscribe, Unsubscribe};

use super::Seq;
use crate::Message;

/// Number of a shared group on the node.
pub type GroupId = u32;

/// What the node has to do because of one packet. Replies are in the output buffer already.
#[derive(Debug)]
pub enum Action<'p> {
    /// Nothing beyond the replies.
    None,
    /// Route this message, then call [`Session::publish_done`](super::Session::publish_done).
    Publish {
        /// The packet; its topic is empty if `alias` holds it.
        publish: Publish<'p>,
        /// Topic from the alias table.
        alias: Option<Rc<str>>,
    },
    /// Subscribe each filter, then call [`Link::suback`](super::Link::suback) with one code
    /// per filter.
    Subscribe(Subscribe<'p>),
    /// Unsubscribe each filter, then call [`Link::unsuback`](super::Link::unsuback).
    Unsubscribe(Unsubscribe<'p>),
    /// The client said goodbye: close the connection, then call
    /// [`Session::connection_lost`](super::Session::connection_lost).
    Disconnected,
    /// The client wants to be authenticated again (0x19), or goes on with that (0x18): call
    /// [`Link::authenticate_continue`](super::Link::authenticate_continue) or
    /// [`Link::authenticate_done`](super::Link::authenticate_done), or
    /// [`Session::disconnect`](super::Session::disconnect) and close. Until then what the client
    /// may do stays as it is.
    Authenticate(Auth<'p>),
}

/// How and to whom one message is delivered.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryOptions<'a> {
    /// Already the lower one of message and subscription.
    pub qos: QoS,
    /// Retain flag to send.
    pub retain: bool,
    /// Subscription identifiers of the matched subscriptions.
    pub identifiers: &'a [u32],
    /// Shared group it was chosen for; such a message is kept until acknowledged, to be given to
    /// another member.
    pub group: Option<GroupId>,
    /// Its publisher was told that this session has it: a full queue takes it beyond its limits.
    pub is_acknowledged: bool,
}

/// What became of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// In the output buffer.
    Sent,
    /// In the session's queue.
    Queued,
    /// Not delivered.
    Dropped(DropReason),
}

/// Why a message was not delivered to one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// Queue full by count or bytes.
    QueueFull,
    /// It waited in a full queue and made room for another.
    QueueDropped,
    /// It waited in the queue for longer than the limit.
    QueueAge,
    /// `QoS` 0 while the client is away (if that is not queued), or any message after a session
    /// that ends with its connection.
    Offline,
    /// `QoS` 0 while the output is congested.
    SlowConsumer,
    /// Over the client's maximum packet size.
    TooLarge,
    /// Message expiry passed.
    Expired,
    /// The topic is not below the connection's mount point, so the client has no name for it: the
    /// session had another one when it subscribed.
    OutsideMount,
    /// It waited for a client that may not have it any more.
    NotAllowed,
    /// It would have had to wait, and the node has no memory for that.
    MemoryShort,
}

/// Server limits plus texts that go into CONNACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct Welcome<'a> {
    /// The node kept a session for this client.
    pub session_present: bool,
    /// Sent if the client asked for response information.
    pub response_information: Option<&'a str>,
    /// Last step of enhanced authentication; left out without a method, and where the client has no
    /// room for it.
    pub authentication_data: Option<&'a [u8]>,
}

/// What is left to do when a connection ended.
#[derive(Debug, Default)]
pub struct Farewell {
    /// Will to publish now.
    pub will: Option<Message>,
    /// The session ended with the connection: remove it and its subscriptions.
    pub session_ended: bool,
}

/// A message of a shared group that its member gives back.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The group.
    pub group: GroupId,
    /// What.
    pub message: Arc<Message>,
    /// The place it had, if it was written down: no [`Step::Removed`](super::Step::Removed) is
    /// noted for it, so that it can be moved.
    pub seq: Option<Seq>,
}

/// What a deadline brought.
#[derive(Debug)]
pub enum Timeout {
    /// Nothing yet.
    Pending,
    /// Nothing came for one and a half keep alives: close with 0x8D.
    KeepAlive,
    /// The time of [`Link::set_valid_until`](super::Link::set_valid_until) has come: close
    /// with 0x87.
    NotAuthorized,
    /// The delayed will is due.
    Will(Message),
    /// The session expired (its will, if still pending, is due too).
    Expired(Option<Message>),
}
