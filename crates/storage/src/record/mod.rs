//! Typed changes of the node's durable state, and their encoding.

mod batch;
mod clock_note;
mod decode;
mod encode;
#[cfg(test)]
mod exact_bytes;

use thrum_codec::packet::SubscriptionOptions;
use thrum_codec::{PacketId, QoS, Version};

pub use batch::Batch;
pub(crate) use batch::{UNIT_END, Units, WORD_LEN};
pub use clock_note::{ClockNote, LogMillis, WallMillis};
pub use decode::Malformed;
pub(crate) use decode::decode;

/// Number of a session, unique on the node and never reused, not even after a restart.
pub type SessionId = u64;

/// Number of a stored message, unique on the node and never reused; 1 to 2⁶² − 1.
pub type MessageId = u64;

/// Sequence number of a delivery in its session: ascending, and never reused in the session.
pub type Seq = u64;

/// Largest [`MessageId`].
pub const MESSAGE_ID_MAX: MessageId = (1 << 62) - 1;

/// One change of the node's durable state.
///
/// A change of an object that does not exist is ignored, so a removal can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// A session exists with these values; written again when one of them changes.
    Session(Session<'a>),
    /// A session ended, along with everything that belongs to it.
    SessionRemoved {
        /// Number of the session.
        session: SessionId,
    },
    /// A session has this subscription, or changed its options.
    Subscription(Subscription<'a>),
    /// A subscription ended.
    SubscriptionRemoved {
        /// Number of the session.
        session: SessionId,
        /// Its filter, as in [`Subscription::filter`].
        filter: &'a str,
    },
    /// A message, stored once for any number of sessions that queue it. It is kept as long as it is
    /// referenced.
    Message(Message<'a>),
    /// A message is to be delivered to a session.
    Queued(Queued<'a>),
    /// A delivery was sent, or advanced by a step.
    Inflight(Inflight),
    /// A delivery is complete: acknowledged, expired or dropped.
    DeliveryRemoved {
        /// Number of the session.
        session: SessionId,
        /// Sequence number of the delivery.
        seq: Seq,
    },
    /// A `QoS` 2 message of the client was accepted; its PUBREL has not arrived yet.
    Received {
        /// Number of the session.
        session: SessionId,
        /// Packet identifier of its PUBLISH.
        packet_id: PacketId,
    },
    /// PUBREL arrived.
    ReceivedRemoved {
        /// Number of the session.
        session: SessionId,
        /// Packet identifier of the PUBLISH.
        packet_id: PacketId,
    },
    /// A session has this will.
    Will(Will<'a>),
    /// The will was published or deleted.
    WillRemoved {
        /// Number of the session.
        session: SessionId,
    },
    /// A message became the retained message of its topic.
    Retained(Retained<'a>),
    /// The retained message of a topic was removed.
    RetainedRemoved {
        /// As [`Retained::change`].
        change: u64,
        /// Topic name.
        topic: &'a str,
    },
    /// The wall-clock time; the last note applies.
    Clock(ClockNote),
    /// The store removes the segments of the log up to this one; only the store writes this change.
    Reclaimed {
        /// Its number.
        segment: u64,
    },
}

/// A session without the state of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session<'a> {
    /// Its number.
    pub id: SessionId,
    /// Client identifier.
    pub client_id: &'a str,
    /// Protocol version of its last connection.
    pub version: Version,
    /// Session expiry in seconds; `u32::MAX` means never.
    pub expiry_secs: u32,
    /// Time since when it has no connection; `None` while it has one.
    pub away_since: Option<LogMillis>,
    /// The last packet identifier allocated at the time of writing (0: none), to continue after it.
    pub packet_id_hint: u16,
    /// The owner of the session.
    pub owner: Owner<&'a str>,
}

/// The user that owns a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner<T> {
    /// An earlier version wrote the session without an owner, or it belongs to no client.
    #[default]
    Unknown,
    /// A client without user name.
    Anonymous,
    /// The user of this name.
    User(T),
}

impl<'a> Owner<&'a str> {
    /// The name of the user, if there is one.
    pub fn user(self) -> Option<&'a str> {
        match self {
            Self::User(name) => Some(name),
            Self::Unknown | Self::Anonymous => None,
        }
    }

    /// A copy that owns the name.
    pub fn boxed(self) -> Owner<Box<str>> {
        match self {
            Self::Unknown => Owner::Unknown,
            Self::Anonymous => Owner::Anonymous,
            Self::User(name) => Owner::User(name.into()),
        }
    }
}

impl Owner<Box<str>> {
    /// A copy that borrows the name.
    pub fn as_deref(&self) -> Owner<&str> {
        match self {
            Self::Unknown => Owner::Unknown,
            Self::Anonymous => Owner::Anonymous,
            Self::User(name) => Owner::User(name),
        }
    }
}

/// A subscription of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription<'a> {
    /// Number of the session.
    pub session: SessionId,
    /// Filter as the client sent it, with the `$share/…/` prefix of a shared one.
    pub filter: &'a str,
    /// Options as granted.
    pub options: SubscriptionOptions,
    /// Subscription identifier; 0 for none.
    pub identifier: u32,
    /// Position among the retained messages that are still to be sent to the session, in a format
    /// of the caller; `None` if all were sent.
    pub owed: Option<&'a [u8]>,
}

/// An application message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its number.
    pub id: MessageId,
    /// Session that published it; 0 is the node.
    pub publisher: SessionId,
    /// Time of arrival, for age limits.
    pub published_at: LogMillis,
    /// Time after which it must not be delivered.
    pub expires_at: Option<LogMillis>,
    /// Quality of service as published.
    pub qos: QoS,
    /// Retain flag as published.
    pub retain: bool,
    /// Topic name.
    pub topic: &'a str,
    /// Properties, in a format of the caller.
    pub properties: &'a [u8],
    /// Payload.
    pub payload: &'a [u8],
}

/// A delivery that is queued or in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued<'a> {
    /// Number of the session.
    pub session: SessionId,
    /// Its sequence number.
    pub seq: Seq,
    /// Number of the message.
    pub message: MessageId,
    /// Quality of service of the delivery.
    pub qos: QoS,
    /// Retain flag of the delivery.
    pub retain: bool,
    /// Subscription identifiers.
    pub identifiers: Identifiers<'a>,
    /// The shared subscription that the session was chosen for, as in [`Subscription::filter`];
    /// empty for none.
    pub group: &'a str,
}

/// The acknowledgement that a delivery expects next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaiting {
    /// `QoS` 1.
    PubAck = 1,
    /// `QoS` 2, first step.
    PubRec = 2,
    /// `QoS` 2, second step: the message itself is no longer needed.
    PubComp = 3,
}

/// A delivery in flight. Steps only advance, and the packet identifier does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inflight {
    /// Number of the session.
    pub session: SessionId,
    /// Sequence number of the delivery.
    pub seq: Seq,
    /// Packet identifier of its PUBLISH.
    pub packet_id: PacketId,
    /// The expected acknowledgement.
    pub awaiting: Awaiting,
}

/// A will that may have to be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Will<'a> {
    /// Number of the session.
    pub session: SessionId,
    /// Seconds after [`Session::away_since`] at which it is due, unless the session ends before.
    pub delay_secs: u32,
    /// Message expiry in seconds, counted from its publication.
    pub message_expiry_secs: Option<u32>,
    /// Quality of service.
    pub qos: QoS,
    /// Retain flag.
    pub retain: bool,
    /// Topic name.
    pub topic: &'a str,
    /// Properties, as in [`Message::properties`].
    pub properties: &'a [u8],
    /// Payload.
    pub payload: &'a [u8],
}

/// A retained message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retained<'a> {
    /// Number of the change: of all changes to a topic the one with the highest number applies, in
    /// any order of the workers' batches. Increment it while the retained messages are locked.
    pub change: u64,
    /// Topic name of the message.
    pub topic: &'a str,
    /// The message.
    pub message: MessageId,
    /// The client that published it, in a format of the caller; `None` if the caller does not
    /// record it.
    pub source: Option<&'a [u8]>,
}

/// Subscription identifiers: a list of the caller, or bytes of a record.
#[derive(Clone, Copy, Debug)]
pub enum Identifiers<'a> {
    /// A list in memory.
    Listed(&'a [u32]),
    /// Little-endian, 4 bytes each.
    Stored(&'a [u8]),
}

impl<'a> Identifiers<'a> {
    /// No identifiers.
    pub const NONE: Self = Identifiers::Listed(&[]);

    /// Iterates over the identifiers.
    pub fn iter(self) -> impl Iterator<Item = u32> + 'a {
        let (listed, stored) = match self {
            Identifiers::Listed(list) => (list, &[][..]),
            Identifiers::Stored(bytes) => (&[][..], bytes),
        };
        let stored = stored.as_chunks().0.iter().copied().map(u32::from_le_bytes);
        listed.iter().copied().chain(stored)
    }
}

impl PartialEq for Identifiers<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Identifiers<'_> {}
