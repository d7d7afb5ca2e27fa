//! One session in full.

use std::sync::Arc;

use thrum_access::Certificate;
use thrum_codec::QoS;

use super::QueryError;
use super::filter::{Subject, has_full_window};
use super::row::{Backlog, SessionRow, row};
use super::sender::QuerySender;
use super::subscriptions::{SubscriptionRow, of_session};
use super::tasks::{TaskProgress, WorkerTask};
use crate::connection::Connection;
use crate::system::{self, TcpCounts};
use crate::traffic::Traffic;
use thrum_engine::Engine;
use thrum_engine::client::Client;
use thrum_engine::events::drop_reason_name;
use thrum_engine::ids::{ConnectionKey, Slot};

/// Subscriptions that are shown with a session; the rest is listed by page.
const SUBSCRIPTIONS_SHOWN: usize = 100;
/// Units of [`detail`], beside those of the subscriptions.
const DETAIL_UNITS: u64 = 256;

/// A session in full.
#[derive(Clone, Debug)]
pub struct SessionDetail {
    /// Its row in a listing.
    pub row: SessionRow,
    /// Its connection; none while the client is disconnected.
    pub connection: Option<ConnectionDetail>,
    /// Number of its worker.
    pub worker: usize,
    /// It is stored on the disk.
    pub is_durable: bool,
    /// The connection, or the last one, began with a clean start.
    pub is_clean_start: bool,
    /// Messages of the client with QoS 1 and 2 whose exchange is not complete.
    pub inflight_received: usize,
    /// Limit of the queue; 0 allows no message.
    pub queue_limit: Backlog,
    /// The will, if there is one.
    pub will: Option<WillDetail>,
    /// When the figures were read, in milliseconds of the Unix epoch: two readings give a rate.
    pub at: u64,
    /// Limits of the session and its connection.
    pub limits: SessionLimits,
    /// The first subscriptions in the order of their filters, at most 100.
    pub subscriptions: Vec<SubscriptionRow>,
    /// Messages that the session did not get since it began, or since the start of the broker, by
    /// reason; without those with QoS 0 that arrived while the client was disconnected.
    pub dropped: Vec<(&'static str, u64)>,
    /// Messages of the client that were refused in the same time, by reason.
    pub refused: Vec<(&'static str, u64)>,
}

/// Limits of a session and its connection, beside that of its queue.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// Subscriptions.
    pub subscriptions: u32,
    /// Messages with QoS 1 and 2 that the client may have unacknowledged.
    pub receive_maximum: u16,
    /// Messages with QoS 1 and 2 that are sent to it before it acknowledges some; a client may ask
    /// for less.
    pub inflight: u16,
    /// Bytes of a packet of the client.
    pub packet_bytes: u32,
    /// Bytes of a payload of the client; none without a limit.
    pub payload_bytes: Option<u32>,
    /// Seconds that a message stays in the queue; none without a limit.
    pub queue_age_secs: Option<u32>,
}

impl SessionLimits {
    fn of(client: &Client) -> Self {
        let limits = client.session.limits();
        Self {
            subscriptions: limits.subscriptions_max,
            receive_maximum: limits.receive_maximum,
            inflight: limits.inflight_max,
            packet_bytes: limits.packet_bytes_max,
            payload_bytes: Some(limits.payload_bytes_max).filter(|bytes| *bytes != u32::MAX),
            queue_age_secs: limits.queue.age_max,
        }
    }
}

/// The connection of a session.
#[derive(Clone, Debug)]
pub struct ConnectionDetail {
    /// `mqtt`, `mqtts`, `ws`, `wss` or `quic`; none if the listener was removed.
    pub scheme: Option<&'static str>,
    /// Keep alive in seconds; 0 is no limit.
    pub keep_alive_secs: u16,
    /// The client's certificate, if it presented one that was verified.
    pub certificate: Option<Arc<Certificate>>,
    /// Counts of its socket; none over Unix sockets and QUIC, and on other systems than Linux.
    pub tcp: Option<TcpCounts>,
    /// Bytes of output that wait for the socket or the disk.
    pub output_bytes: u64,
    /// Reasons why it is slowed or not read now.
    pub limited: Vec<Limited>,
}

/// A reason why a connection is slowed or not read now, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited(pub &'static str);

/// A will.
#[derive(Clone, Debug)]
pub struct WillDetail {
    /// Topic name.
    pub topic: String,
    /// Quality of service.
    pub qos: QoS,
    /// It will be retained.
    pub retain: bool,
    /// Bytes of the payload.
    pub payload_bytes: u64,
    /// Seconds from the end of the connection until it is published.
    pub delay_secs: u32,
}

/// See [`Queries::session`](super::Queries::session).
pub(super) fn session(
    sender: &QuerySender,
    client_id: &str,
) -> Result<Option<SessionDetail>, QueryError> {
    let task = || ShowSession {
        client_id: client_id.into(),
    };
    let answers = sender.query_all(task)?;
    let mut found = answers.into_iter().flatten().next();
    if let Some(detail) = &mut found {
        name_scheme(sender, detail);
    }
    Ok(found.map(|detail| *detail))
}

fn name_scheme(sender: &QuerySender, detail: &mut SessionDetail) {
    let super::Presence::Connected { listener, .. } = &detail.row.presence else {
        return;
    };
    let listening = sender.control.listening();
    let found = listening.iter().find(|one| *one.listener == **listener);
    if let Some(connection) = &mut detail.connection {
        connection.scheme = found.map(|listening| listening.scheme);
    }
}

#[derive(Debug)]
pub(super) struct ShowSession {
    pub(super) client_id: Box<str>,
}

impl WorkerTask for ShowSession {
    type Answer = Option<Box<SessionDetail>>;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<Self::Answer> {
        let slot = traffic.engine.core.sessions.find(&self.client_id);
        TaskProgress::Done(slot.map(|slot| {
            let client = &traffic.engine.core.sessions[slot];
            let subscriptions = client.subscription_count() as u64;
            traffic.engine.core.turn.work += DETAIL_UNITS + 4 * subscriptions;
            Box::new(detail(traffic, slot))
        }))
    }
}

fn detail(traffic: &mut Traffic, slot: Slot) -> SessionDetail {
    let Traffic { edge, engine, .. } = traffic;
    let client = &engine.core.sessions[slot];
    let row = row(&mut Subject {
        edge,
        engine,
        client,
    });
    let session = &client.session;
    let queue = &session.limits().queue;
    let connection = client.connection.and_then(|key| {
        let connection = edge.connections.get(key)?;
        Some(connection_detail(engine, client, key, connection))
    });
    let mut subscriptions: Vec<SubscriptionRow> = of_session(engine, slot).collect();
    subscriptions.sort_by(|one, other| one.filter.cmp(&other.filter));
    subscriptions.truncate(SUBSCRIPTIONS_SHOWN);
    SessionDetail {
        row,
        connection,
        worker: engine.core.id.index(),
        is_durable: session.is_durable(),
        is_clean_start: session.link().is_clean_start(),
        inflight_received: session.inbound().under_way(),
        queue_limit: Backlog {
            messages: queue.messages_max.into(),
            bytes: queue.bytes_max.into(),
        },
        will: session.will().map(|will| WillDetail {
            topic: will.message.topic().to_owned(),
            qos: will.message.qos(),
            retain: will.message.retain(),
            payload_bytes: will.message.payload().len() as u64,
            delay_secs: will.delay_secs,
        }),
        subscriptions,
        at: engine.core.node.wall.millis(engine.core.turn.now),
        limits: SessionLimits::of(client),
        dropped: client
            .dropped()
            .map(|(reason, count)| (drop_reason_name(reason), count))
            .collect(),
        refused: client
            .refused()
            .map(|(reason, count)| (reason.name(), count))
            .collect(),
    }
}

fn connection_detail(
    engine: &Engine,
    client: &Client,
    key: ConnectionKey,
    connection: &Connection,
) -> ConnectionDetail {
    let output = &engine.core.outputs[key];
    let carried = system::tcp_counts(&connection.socket);
    let access = client.access.as_deref();
    let certificate = access.and_then(|access| access.identity.certificate.as_ref());
    let mut limited: Vec<&'static str> = connection.reading.reasons().collect();
    if output.is_congested {
        limited
            .push("it does not take its output: messages wait in the queue, and QoS 0 is dropped");
    }
    if has_full_window(client) && !output.is_congested {
        limited.push("its window is full: messages wait until it acknowledges some");
    }
    ConnectionDetail {
        scheme: None,
        keep_alive_secs: client.session.lifetime().keep_alive(),
        certificate: certificate.cloned(),
        tcp: carried,
        output_bytes: connection.waiting(output) as u64,
        limited: limited.into_iter().map(Limited).collect(),
    }
}
