//! Events of a client with their causes as data.

use std::net::IpAddr;
use std::sync::Arc;

use thrum_codec::{QoS, ReasonCode, Version};
use thrum_protocol::server::DropReason;

use crate::peer::Peer;

/// An event of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The broker accepted a CONNECT.
    Connected(NewConnection),
    /// The broker refused a CONNECT with this client identifier, of this client or of another one.
    Refused {
        /// The other end of the connection.
        peer: Peer,
        /// The reason code, as in 5.0.
        reason: ReasonCode,
        /// The reason in words.
        what: &'static str,
    },
    /// The connection ended.
    Disconnected {
        /// Why it ended.
        cause: EndCause,
        /// Seconds that it lasted.
        connected_secs: u32,
        /// The session ended with it.
        session_ended: bool,
    },
    /// The session ended while the client was disconnected.
    SessionEnded(SessionEnd),
    /// The broker granted a filter.
    Subscribed {
        /// The filter, with the mount point.
        filter: Box<str>,
        /// The granted quality of service.
        qos: QoS,
        /// The rules allow only some of its topics.
        in_part: bool,
    },
    /// The broker refused a filter.
    SubscriptionRefused {
        /// The filter, with the mount point.
        filter: Box<str>,
        /// The reason code, as in 5.0.
        reason: ReasonCode,
        /// Why.
        why: RefusalCause,
    },
    /// The client ended a subscription.
    Unsubscribed {
        /// The filter, with the mount point.
        filter: Box<str>,
    },
    /// The broker is about to end a subscription, because the rules have changed.
    SubscriptionRevoked {
        /// The filter, with the mount point.
        filter: Box<str>,
    },
    /// The broker refused PUBLISH packets on a topic.
    PublishRefused {
        /// The topic as the client wrote it.
        topic: Box<str>,
        /// Why.
        why: RefusalCause,
    },
    /// Messages were not delivered to the client.
    Dropped(DropReason),
    /// The client was not read for a time, because it has used up a rate.
    Slowed {
        /// The key of the limit in the configuration.
        limit: &'static str,
    },
    /// The will was published.
    WillPublished {
        /// Its topic.
        topic: Box<str>,
    },
    /// The will was not published.
    WillDropped {
        /// Its topic.
        topic: Box<str>,
        /// The reason in words.
        why: &'static str,
    },
}

/// A connection that the broker has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewConnection {
    /// The other end of the connection.
    pub peer: Peer,
    /// Name of the listener.
    pub listener: Arc<str>,
    /// Protocol version.
    pub version: Version,
    /// The connection resumes an existing session.
    pub session_present: bool,
    /// Keep alive in seconds as it holds for the connection; 0 is no limit.
    pub keep_alive_secs: u16,
    /// Seconds that the session outlives its connection; `u32::MAX` for no expiry.
    pub expiry_secs: u32,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// The client sent DISCONNECT.
    ByClient {
        /// It asked for its will to be published.
        with_will: bool,
    },
    /// The connection was lost without DISCONNECT.
    Lost,
    /// Nothing was received for one and a half times the keep alive.
    KeepAlive {
        /// The keep alive in seconds.
        keep_alive_secs: u16,
        /// Milliseconds since the last packet.
        silent_millis: u64,
    },
    /// Another connection has taken over the session.
    TakenOver {
        /// The other end of that connection.
        by: Peer,
    },
    /// The broker closed the connection.
    ByBroker {
        /// The reason code, as in 5.0.
        reason: ReasonCode,
        /// The reason in words.
        what: &'static str,
    },
}

/// Why a session ended while its client was disconnected, or as another connection began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// Its client stayed away for too long.
    Expired {
        /// The session expiry in seconds.
        expiry_secs: u32,
    },
    /// A clean start replaced it.
    CleanStart,
    /// The operator ended it.
    ByOperator,
}

/// Why the broker refused a packet or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusalCause {
    /// The rules do not allow it; the text names the rule and its place, or says that no rule
    /// allows it.
    Rule(Box<str>),
    /// A limit is reached: its key in the configuration.
    Limit(&'static str),
    /// Another reason, in words.
    Other(&'static str),
}

impl ClientEvent {
    /// Whether an event of this kind may be counted with earlier ones, instead of being listed:
    /// such events may happen many times in a second.
    pub(super) const fn may_be_counted(&self) -> bool {
        match self {
            Self::Refused { .. }
            | Self::Subscribed { .. }
            | Self::SubscriptionRefused { .. }
            | Self::Unsubscribed { .. }
            | Self::SubscriptionRevoked { .. }
            | Self::PublishRefused { .. }
            | Self::Dropped(_)
            | Self::Slowed { .. } => true,
            Self::Connected(_)
            | Self::Disconnected { .. }
            | Self::SessionEnded(_)
            | Self::WillPublished { .. }
            | Self::WillDropped { .. } => false,
        }
    }

    /// Whether this event repeats an earlier one; a client that connects again has another port.
    pub(super) fn repeats(&self, earlier: &Self) -> bool {
        match (self, earlier) {
            (
                Self::Refused { peer, reason, what },
                Self::Refused {
                    peer: from,
                    reason: before,
                    what: said,
                },
            ) => {
                let address: Option<IpAddr> = peer.address();
                address == from.address() && reason == before && what == said
            }
            // The end of a subscription and its new begin are no repetition of the first begin.
            (Self::Subscribed { .. } | Self::Unsubscribed { .. }, _) => false,
            _ => self.may_be_counted() && self == earlier,
        }
    }

    /// Bytes of its texts on the heap.
    pub(super) fn text_bytes(&self) -> usize {
        let of = |why: &RefusalCause| match why {
            RefusalCause::Rule(text) => text.len(),
            RefusalCause::Limit(_) | RefusalCause::Other(_) => 0,
        };
        match self {
            Self::SubscriptionRefused { filter, why, .. } => filter.len() + of(why),
            Self::PublishRefused { topic, why } => topic.len() + of(why),
            Self::Subscribed { filter, .. }
            | Self::Unsubscribed { filter }
            | Self::SubscriptionRevoked { filter } => filter.len(),
            Self::WillPublished { topic } | Self::WillDropped { topic, .. } => topic.len(),
            Self::Connected(_)
            | Self::Refused { .. }
            | Self::Disconnected { .. }
            | Self::SessionEnded(_)
            | Self::Dropped(_)
            | Self::Slowed { .. } => 0,
        }
    }
}
