//! A session in one row.

use std::net::IpAddr;
use std::sync::Arc;

use thrum_codec::Version;

use super::best::TextBytes;
use super::filter::{Figure, ProblemSet, Subject, problems};
use crate::connection::Connection;
use crate::edge::Edge;
use thrum_engine::client::Client;

/// A session in a listing.
#[derive(Clone, Debug)]
pub struct SessionRow {
    /// Client identifier.
    pub client_id: Box<str>,
    /// User; none if no user was verified.
    pub user: Option<Box<str>>,
    /// Whether its client is connected, and since when.
    pub presence: Presence,
    /// Protocol version of the connection, or of the last one.
    pub version: Version,
    /// Seconds that the session outlives its connection, `u32::MAX` for no expiry.
    pub expiry_secs: u32,
    /// Messages in its queue.
    pub queued: Backlog,
    /// Messages with QoS 1 and 2 that were sent and not acknowledged.
    pub inflight: usize,
    /// Subscriptions, shared ones included.
    pub subscriptions: usize,
    /// PUBLISH packets with new messages from the client, on this connection or the last one.
    pub messages_received: u32,
    /// PUBLISH packets to the client, on this connection or the last one.
    pub messages_sent: u32,
    /// Messages that the session did not get since it began, or since the start of the broker;
    /// without those with QoS 0 that arrived while the client was disconnected.
    pub dropped: u64,
    /// Seconds since the last packet of the client, or since its connection ended.
    pub idle_secs: u64,
    /// Seconds since the oldest queued message was queued.
    pub oldest_queued_secs: Option<u64>,
    /// Seconds since the session got the oldest message that was sent and not acknowledged; none
    /// also if the session keeps no copy of it, as sessions do that end with their connection.
    pub oldest_unacknowledged_secs: Option<u64>,
    /// Problems of the client now.
    pub problems: ProblemSet,
}

impl TextBytes for SessionRow {
    fn text_bytes(&self) -> usize {
        self.client_id.len() + self.user.as_deref().map_or(0, str::len)
    }
}

/// Messages and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Messages.
    pub messages: u64,
    /// Bytes of memory that they take.
    pub bytes: u64,
}

/// Whether a client is connected. Times are milliseconds of the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is connected.
    Connected {
        /// When the connection began.
        since: u64,
        /// Address and port, or the kind of connection if it has none.
        peer: String,
        /// Name of the listener in the configuration.
        listener: Arc<str>,
    },
    /// It is disconnected.
    Away {
        /// When its connection ended.
        since: u64,
    },
}

/// The row of a session.
pub(super) fn row(subject: &mut Subject<'_>) -> SessionRow {
    let client = subject.client;
    let now = subject.engine.core.turn.now;
    let session = &client.session;
    let (messages, bytes, inflight) = session.outbound().backlog();
    let traffic = session.link().traffic();
    let secs = |figure: Figure| figure.of(client, now);
    SessionRow {
        client_id: session.client_id().into(),
        user: client.owner().user().map(Into::into),
        presence: presence(subject),
        version: session.link().version(),
        expiry_secs: session.lifetime().session_expiry(),
        queued: Backlog {
            messages: messages as u64,
            bytes: bytes as u64,
        },
        inflight,
        subscriptions: client.subscription_count(),
        messages_received: traffic.received,
        messages_sent: traffic.sent,
        dropped: secs(Figure::Dropped).unwrap_or(0),
        idle_secs: secs(Figure::Idle).unwrap_or(0),
        oldest_queued_secs: secs(Figure::OldestQueued),
        oldest_unacknowledged_secs: secs(Figure::OldestUnacknowledged),
        problems: problems(subject, now),
    }
}

fn presence(subject: &mut Subject<'_>) -> Presence {
    let client = subject.client;
    let wall = &subject.engine.core.node.wall;
    let session = &client.session;
    let Some(connection) = connection_of(subject.edge, client) else {
        return Presence::Away {
            since: wall.millis(session.lifetime().last_activity()),
        };
    };
    let (peer, gate) = (connection.peer.to_string(), connection.gate);
    Presence::Connected {
        since: wall.millis(session.link().traffic().began()),
        peer,
        listener: Arc::clone(&subject.edge.gates.get(gate).name),
    }
}

/// The connection of a session.
pub(super) fn connection_of<'a>(edge: &'a Edge, client: &Client) -> Option<&'a Connection> {
    edge.connections.get(client.connection?)
}

/// Address of the client's connection, or of the last one, if it is known.
pub(super) fn address_of(edge: &Edge, client: &Client) -> Option<IpAddr> {
    if let Some(connection) = connection_of(edge, client) {
        return connection.peer.own_address();
    }
    client.access.as_deref()?.identity.address
}
