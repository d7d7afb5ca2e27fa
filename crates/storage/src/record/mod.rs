//! What the node writes down: typed changes of its durable state, and their bytes.

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

/// Number of a session, unique on the node and never used again, not even after a restart.
pub type SessionId = u64;

/// Number of a stored message, unique on the node and never used again; 1 to 2⁶² − 1.
pub type MessageId = u64;

/// Place of a delivery in its session: rises with each, and is never used again in the session.
pub type Seq = u64;

/// Largest [`MessageId`].
pub const MESSAGE_ID_MAX: MessageId = (1 << 62) - 1;

/// One step of the node's durable state.
///
/// What a change names and the state lacks is let be: removing twice is removing once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// A session exists, with these values; written again when one of them changes.
    Session(Session<'a>),
    /// A session ended, and with it all that is its own.
    SessionRemoved {
        /// Which one.
        session: SessionId,
    },
    /// A session has this subscription, or has it now with these options.
    Subscription(Subscription<'a>),
    /// A subscription ended.
    SubscriptionRemoved {
        /// Whose.
        session: SessionId,
        /// Its filter, as in [`Subscription::filter`].
        filter: &'a str,
    },
    /// A message, stored once however many sessions queue it. It is kept as long as something
    /// refers to it.
    Message(Message<'a>),
    /// A message is to be delivered to a session.
    Queued(Queued<'a>),
    /// A delivery was sent, or went a step further.
    Inflight(Inflight),
    /// A delivery is over: acknowledged, expired or dropped.
    DeliveryRemoved {
        /// Whose.
        session: SessionId,
        /// Which one.
        seq: Seq,
    },
    /// A `QoS` 2 message of the client was taken over; PUBREL has not come yet.
    Received {
        /// Whose.
        session: SessionId,
        /// Of its PUBLISH.
        packet_id: PacketId,
    },
    /// PUBREL came.
    ReceivedRemoved {
        /// Whose.
        session: SessionId,
        /// Of the PUBLISH.
        packet_id: PacketId,
    },
    /// A session has this will.
    Will(Will<'a>),
    /// The will was published or withdrawn.
    WillRemoved {
        /// Whose.
        session: SessionId,
    },
    /// A message became its topic's retained one.
    Retained(Retained<'a>),
    /// A topic has no retained message any more.
    RetainedRemoved {
        /// As [`Retained::change`].
        change: u64,
        /// Topic name.
        topic: &'a str,
    },
    /// What the wall clock shows; the last one counts.
    Clock(ClockNote),
    /// The store gives back the segments of the log up to this one; only it writes that.
    Reclaimed {
        /// Its number.
        segment: u64,
    },
}

/// A session; nothing of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session<'a> {
    /// Its number.
    pub id: SessionId,
    /// Client identifier.
    pub client_id: &'a str,
    /// Protocol version of its last connection.
    pub version: Version,
    /// Session expiry in seconds; `u32::MAX` is never.
    pub expiry_secs: u32,
    /// Since when it has no connection; `None` while it has one.
    pub away_since: Option<LogMillis>,
    /// The last packet identifier handed out when this was written (0: none), to go on behind it.
    pub packet_id_hint: u16,
    /// Whose it is.
    pub owner: Owner<&'a str>,
}

/// The user that a session belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner<T> {
    /// It was written by a version that did not say, or is no client's.
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

    /// With a name of its own.
    pub fn boxed(self) -> Owner<Box<str>> {
        match self {
            Self::Unknown => Owner::Unknown,
            Self::Anonymous => Owner::Anonymous,
            Self::User(name) => Owner::User(name.into()),
        }
    }
}

impl Owner<Box<str>> {
    /// With a name that is lent.
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
    /// Whose.
    pub session: SessionId,
    /// Filter as the client sent it, with the `$share/…/` prefix of a shared one.
    pub filter: &'a str,
    /// Options as granted.
    pub options: SubscriptionOptions,
    /// Subscription identifier; 0 is none.
    pub identifier: u32,
    /// Retained messages that the session is still owed, as a place among them in whatever form the
    /// owner gives it; none if it is owed no more.
    pub owed: Option<&'a [u8]>,
}

/// An application message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its number.
    pub id: MessageId,
    /// Session that published it; 0 is the node.
    pub publisher: SessionId,
    /// When it came, for limits of age.
    pub published_at: LogMillis,
    /// When it is no longer to be delivered.
    pub expires_at: Option<LogMillis>,
    /// Quality of service as published.
    pub qos: QoS,
    /// Retain flag as published.
    pub retain: bool,
    /// Topic name.
    pub topic: &'a str,
    /// Properties, in whatever form the owner gives them.
    pub properties: &'a [u8],
    /// Payload.
    pub payload: &'a [u8],
}

/// A delivery that waits or is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued<'a> {
    /// To whom.
    pub session: SessionId,
    /// Its place.
    pub seq: Seq,
    /// What.
    pub message: MessageId,
    /// Quality of service of the delivery.
    pub qos: QoS,
    /// Retain flag of the delivery.
    pub retain: bool,
    /// Subscription identifiers.
    pub identifiers: Identifiers<'a>,
    /// The shared subscription it was chosen for, as in [`Subscription::filter`]; empty for none.
    pub group: &'a str,
}

/// What the client has to answer next to a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaiting {
    /// `QoS` 1.
    PubAck = 1,
    /// `QoS` 2, first step.
    PubRec = 2,
    /// `QoS` 2, second step: the message itself is no longer needed.
    PubComp = 3,
}

/// A delivery under way. Steps go forward only, and the packet identifier stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inflight {
    /// To whom.
    pub session: SessionId,
    /// Place of the delivery.
    pub seq: Seq,
    /// Packet identifier it was sent with.
    pub packet_id: PacketId,
    /// Next step.
    pub awaiting: Awaiting,
}

/// A will that may have to be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Will<'a> {
    /// Whose.
    pub session: SessionId,
    /// Seconds after [`Session::away_since`] at which it is due, unless the session ends before.
    pub delay_secs: u32,
    /// Message expiry in seconds, counted from when it is published.
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
    /// Number of the change: of all changes to a topic the one with the highest counts, in whatever
    /// order the workers' batches come. Count it up where the retained messages are locked.
    pub change: u64,
    /// Topic name, that of the message.
    pub topic: &'a str,
    /// The message.
    pub message: MessageId,
    /// The client that published it, in whatever form the owner gives it; none if the owner keeps
    /// none.
    pub source: Option<&'a [u8]>,
}

/// Subscription identifiers: listed by the owner, or as they stand in a record.
#[derive(Clone, Copy, Debug)]
pub enum Identifiers<'a> {
    /// From memory.
    Listed(&'a [u32]),
    /// Little-endian, 4 bytes each.
    Stored(&'a [u8]),
}

impl<'a> Identifiers<'a> {
    /// None.
    pub const NONE: Self = Identifiers::Listed(&[]);

    /// One after the other.
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
