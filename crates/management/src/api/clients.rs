//! `/clients`: sessions, with their connections if they have any.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use thrum_access::Network;
use thrum_broker::{
    ConnectionDetail, Presence, SessionDetail, SessionFilter, SessionQuery, SessionRow, SortKey,
    WildcardText, WillDetail,
};
use thrum_codec::Version;

use super::request::{ClientId, Parameters, page, parsed};
use super::subscriptions::Subscription;
use super::{ApiState, Problem};
use crate::timestamp::timestamp;

/// A client: its session, and its connection if it has one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Client {
    /// Client identifier.
    pub client_id: String,
    /// User; null if no user was verified.
    pub user: Option<String>,
    /// It is connected.
    pub connected: bool,
    /// Start of the connection; null while it is disconnected.
    pub connected_at: Option<String>,
    /// End of its connection; null while it is connected.
    pub away_since: Option<String>,
    /// Address and port, or the kind of connection if it has none; null while it is disconnected.
    pub peer: Option<String>,
    /// Name of the listener; null while it is disconnected.
    pub listener: Option<String>,
    /// `3.1`, `3.1.1` or `5.0`.
    pub protocol_version: String,
    /// Seconds that the session outlives its connection; null: it does not expire.
    pub session_expiry_secs: Option<u32>,
    /// Messages in its queue.
    pub queued_messages: u64,
    /// Their bytes.
    pub queued_bytes: u64,
    /// Messages that it has not acknowledged.
    pub inflight: usize,
    /// Subscriptions, shared ones included.
    pub subscriptions: usize,
    /// Messages from it, on this connection or the last one.
    pub messages_received: u32,
    /// Messages to it, on this connection or the last one.
    pub messages_sent: u32,
}

/// A page of clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClientPage {
    /// The clients, in the order of `sort`.
    pub clients: Vec<Client>,
    /// Clients that match the parameters, on all pages together; null with `sort=none`.
    pub matching: Option<u64>,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// A client in full.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClientDetail {
    /// Its row in a listing.
    #[serde(flatten)]
    pub client: Client,
    /// Its connection; null while it is disconnected.
    pub connection: Option<Connection>,
    /// Number of the session's worker.
    pub worker: usize,
    /// The session is stored on the disk.
    pub durable: bool,
    /// The connection, or the last one, began with a clean start.
    pub clean_start: bool,
    /// Messages from it with QoS 1 and 2 whose exchange is not complete.
    pub inflight_received: usize,
    /// Limit of its queue.
    pub queue_limit: Queue,
    /// The will; null if there is none.
    pub will: Option<Will>,
    /// The first 100 subscriptions by filter; the rest is at `/clients/{id}/subscriptions`.
    pub subscription_list: Vec<Subscription>,
    /// Messages that were not sent to it, by reason, without those of QoS 0 that were published
    /// while it was disconnected.
    pub dropped: Vec<Dropped>,
}

/// Messages and bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Queue {
    /// Messages.
    pub messages: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Messages that were dropped for one reason.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dropped {
    /// The reason, as in `$SYS/broker/publish/messages/dropped`.
    pub reason: String,
    /// Number of messages.
    pub messages: u64,
}

/// The connection of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Connection {
    /// `mqtt`, `mqtts`, `ws`, `wss` or `quic`; null if its listener was removed.
    pub scheme: Option<String>,
    /// Keep alive in seconds; 0 is no limit.
    pub keep_alive_secs: u16,
    /// Subject of its certificate; null if it has none.
    pub certificate: Option<String>,
    /// Bytes from it, with TLS if there is any; null over Unix sockets and QUIC.
    pub bytes_received: Option<u64>,
    /// Bytes to it, with TLS if there is any; null over Unix sockets and QUIC.
    pub bytes_sent: Option<u64>,
    /// The time to it and back in microseconds; null over Unix sockets and QUIC.
    pub round_trip_micros: Option<u32>,
    /// Bytes of output that wait for the socket or the disk.
    pub output_bytes: u64,
    /// Reasons why it is slowed or not read now, in words.
    pub limited: Vec<String>,
}

/// A will.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Will {
    /// Topic.
    pub topic: String,
    /// Quality of service.
    pub qos: u8,
    /// It will be retained.
    pub retain: bool,
    /// Bytes of its payload.
    pub payload_bytes: u64,
    /// Seconds from the end of the connection until it is published.
    pub delay_secs: u32,
}

/// The effect of a kick.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Kicked {
    /// It was connected and has been disconnected.
    pub disconnected: bool,
    /// Its session has ended.
    pub session_ended: bool,
}

/// Parameters of a list of clients.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ListParameters {
    client: Option<String>,
    user: Option<String>,
    address: Option<String>,
    connected: Option<bool>,
    subscribed: Option<String>,
    version: Option<String>,
    sort: Option<String>,
    descending: bool,
    limit: Option<usize>,
    cursor: Option<String>,
}

impl ListParameters {
    fn query(&self) -> Result<SessionQuery, Problem> {
        let (limit, cursor) = page(self.limit, self.cursor.as_deref())?;
        let network = self.address.as_deref();
        let network = network.map(|text| parsed::<Network>("address", text));
        Ok(SessionQuery {
            filter: SessionFilter {
                client_id: self.client.as_deref().map(WildcardText::new),
                user: self.user.clone(),
                network: network.transpose()?,
                is_connected: self.connected,
                subscribed: self.subscribed.clone(),
                version: self.version.as_deref().map(version).transpose()?,
            },
            sort: self
                .sort
                .as_deref()
                .map(sort)
                .transpose()?
                .unwrap_or_default(),
            is_descending: self.descending,
            limit,
            cursor,
        })
    }
}

pub(super) async fn list(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<ListParameters>,
) -> Result<Json<ClientPage>, Problem> {
    let query = parameters.query()?;
    let found = api.query(move |queries| queries.sessions(&query)).await?;
    Ok(Json(ClientPage {
        clients: found.page.rows.into_iter().map(Client::from).collect(),
        matching: found.matching,
        next: found.page.next.map(|next| next.to_string()),
    }))
}

pub(super) async fn show(
    State(api): State<ApiState>,
    ClientId(client_id): ClientId,
) -> Result<Json<ClientDetail>, Problem> {
    let name = client_id.clone();
    let found = api.query(move |queries| queries.session(&name)).await?;
    let found = found.ok_or_else(|| Problem::no_client(&client_id))?;
    Ok(Json(found.into()))
}

/// Parameters of a kick: whether the session ends too.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct KickParameters {
    session: bool,
}

pub(super) async fn kick(
    State(api): State<ApiState>,
    ClientId(client_id): ClientId,
    Parameters(KickParameters { session }): Parameters<KickParameters>,
) -> Result<Json<Kicked>, Problem> {
    let name = client_id.clone();
    let kicked = api
        .query(move |queries| queries.kick(&name, session))
        .await?;
    let kicked = kicked.ok_or_else(|| Problem::no_client(&client_id))?;
    Ok(Json(Kicked {
        disconnected: kicked.was_connected,
        session_ended: kicked.session_ended,
    }))
}

/// The names of sort keys, in the order in which they are shown.
const SORT_KEYS: [(&str, SortKey); 8] = [
    ("client_id", SortKey::ClientId),
    ("connected_at", SortKey::ConnectedSince),
    ("queued_messages", SortKey::QueuedMessages),
    ("queued_bytes", SortKey::QueuedBytes),
    ("subscriptions", SortKey::Subscriptions),
    ("messages_received", SortKey::MessagesReceived),
    ("messages_sent", SortKey::MessagesSent),
    ("none", SortKey::Unsorted),
];

fn sort(name: &str) -> Result<SortKey, Problem> {
    let found = SORT_KEYS.iter().find(|(known, _)| *known == name);
    found.map(|(_, key)| *key).ok_or_else(|| {
        let known = SORT_KEYS.map(|(name, _)| name).join(", ");
        Problem::bad_request(format!("sort is one of {known}, not {name:?}"))
    })
}

fn version(text: &str) -> Result<Version, Problem> {
    match text {
        "3.1" => Ok(Version::V31),
        "3.1.1" => Ok(Version::V311),
        "5" | "5.0" => Ok(Version::V5),
        other => {
            let what = format!("version is one of 3.1, 3.1.1, 5.0, not {other:?}");
            Err(Problem::bad_request(what))
        }
    }
}

fn version_text(version: Version) -> &'static str {
    match version {
        Version::V31 => "3.1",
        Version::V311 => "3.1.1",
        Version::V5 => "5.0",
    }
}

impl From<SessionRow> for Client {
    fn from(row: SessionRow) -> Self {
        let (connected_at, away_since, peer, listener) = match row.presence {
            Presence::Connected {
                since,
                peer,
                listener,
            } => (Some(since), None, Some(peer), Some(listener.to_string())),
            Presence::Away { since } => (None, Some(since), None, None),
        };
        Self {
            client_id: row.client_id.into(),
            user: row.user.map(Into::into),
            connected: connected_at.is_some(),
            connected_at: connected_at.map(timestamp),
            away_since: away_since.map(timestamp),
            peer,
            listener,
            protocol_version: version_text(row.version).to_owned(),
            session_expiry_secs: Some(row.expiry_secs).filter(|secs| *secs != u32::MAX),
            queued_messages: row.queued.messages,
            queued_bytes: row.queued.bytes,
            inflight: row.inflight,
            subscriptions: row.subscriptions,
            messages_received: row.messages_received,
            messages_sent: row.messages_sent,
        }
    }
}

impl From<SessionDetail> for ClientDetail {
    fn from(detail: SessionDetail) -> Self {
        let dropped = detail.dropped.into_iter();
        let subscriptions = detail.subscriptions.into_iter();
        Self {
            client: detail.row.into(),
            connection: detail.connection.map(Connection::from),
            worker: detail.worker,
            durable: detail.is_durable,
            clean_start: detail.is_clean_start,
            inflight_received: detail.inflight_received,
            queue_limit: Queue {
                messages: detail.queue_limit.messages,
                bytes: detail.queue_limit.bytes,
            },
            will: detail.will.map(Will::from),
            subscription_list: subscriptions.map(Subscription::from).collect(),
            dropped: dropped
                .map(|(reason, messages)| Dropped {
                    reason: reason.to_owned(),
                    messages,
                })
                .collect(),
        }
    }
}

impl From<ConnectionDetail> for Connection {
    fn from(detail: ConnectionDetail) -> Self {
        let limited = detail.limited.into_iter();
        Self {
            scheme: detail.scheme.map(ToOwned::to_owned),
            keep_alive_secs: detail.keep_alive_secs,
            certificate: detail.certificate.map(Into::into),
            bytes_received: detail.bytes_received,
            bytes_sent: detail.bytes_sent,
            round_trip_micros: detail.round_trip_micros,
            output_bytes: detail.output_bytes,
            limited: limited.map(|limited| limited.0.to_owned()).collect(),
        }
    }
}

impl From<WillDetail> for Will {
    fn from(will: WillDetail) -> Self {
        Self {
            topic: will.topic,
            qos: will.qos.as_u8(),
            retain: will.retain,
            payload_bytes: will.payload_bytes,
            delay_secs: will.delay_secs,
        }
    }
}
