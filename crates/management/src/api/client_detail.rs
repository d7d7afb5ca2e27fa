//! One client in full.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use thrum_access::Certificate;
use thrum_broker::{ConnectionDetail, SessionDetail, SessionLimits, TcpCounts, WillDetail};
use tokio::time::sleep;
use utoipa::ToSchema;

use super::clients::Client;
use super::openapi::{Asked, NotFound};
use super::request::{ClientId, Parameters};
use super::subscriptions::Subscription;
use super::{ApiState, Problem};

/// Longest time over which rates are measured: a request has 15 s in all.
const SAMPLE_MILLIS_MAX: u64 = 5000;

/// A client in full.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
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
    /// Its other limits; null from a broker of an earlier version.
    #[serde(default)]
    pub limits: Option<Limits>,
    /// What it sends and gets in a second, measured over `sample_ms`; null without it, and if the
    /// client connected or disconnected meanwhile.
    #[serde(default)]
    pub rates: Option<Rates>,
    /// The will; null if there is none.
    pub will: Option<Will>,
    /// The first 100 subscriptions by filter; the rest is at `/clients/{id}/subscriptions`.
    pub subscription_list: Vec<Subscription>,
    /// Messages that were not sent to it, by reason, without those of QoS 0 that were published
    /// while it was disconnected.
    pub dropped: Vec<Dropped>,
    /// Messages from it that were refused, by reason, as in
    /// `$SYS/broker/publish/messages/refused`; since its session or the broker began.
    #[serde(default)]
    pub refused: Vec<Dropped>,
}

/// Limits of a client, beside that of its queue.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct Limits {
    /// Subscriptions.
    pub subscriptions: u32,
    /// Messages with QoS 1 and 2 that it may have unacknowledged.
    pub receive_maximum: u16,
    /// Messages with QoS 1 and 2 that are sent to it before it acknowledges some; it may ask for
    /// less.
    pub inflight: u16,
    /// Bytes of a packet from it.
    pub packet_bytes: u32,
    /// Bytes of a payload from it; null without a limit.
    pub payload_bytes: Option<u32>,
    /// Seconds that a message stays in its queue; null without a limit.
    pub queue_age_secs: Option<u32>,
}

/// Messages and bytes in a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Rates {
    /// Milliseconds over which they were measured.
    pub millis: u64,
    /// Messages from it.
    pub messages_received: f64,
    /// Messages to it.
    pub messages_sent: f64,
    /// Bytes from it; null over Unix sockets and QUIC.
    pub bytes_received: Option<f64>,
    /// Bytes to it that it acknowledged; null over Unix sockets and QUIC.
    pub bytes_sent: Option<f64>,
}

/// Messages and bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// Messages.
    pub messages: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Messages that were dropped, or refused, for one reason.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Dropped {
    /// The reason, as in `$SYS/broker/publish/messages/dropped` or `…/refused`.
    pub reason: String,
    /// Number of messages.
    pub messages: u64,
}

/// The connection of a client.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
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
    /// The certificate that it presented; null if it has none.
    #[serde(default)]
    pub certificate_details: Option<ClientCertificate>,
    /// Counts of its socket; null over Unix sockets and QUIC.
    #[serde(default)]
    pub tcp: Option<Tcp>,
    /// Bytes of output that wait for the socket or the disk.
    pub output_bytes: u64,
    /// Reasons why it is slowed or not read now, in words.
    pub limited: Vec<String>,
}

/// The certificate of a client.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClientCertificate {
    /// The subject as RFC 4514 writes it.
    pub subject: String,
    /// The first common name of the subject.
    pub common_name: Option<String>,
    /// Subject alternative names: DNS names, mail addresses and URIs.
    pub alternative_names: Vec<String>,
    /// Serial number in hexadecimal.
    pub serial: String,
    /// SHA-256 of the DER form in hexadecimal.
    pub sha256: String,
}

/// Counts of a socket, as the system knows them.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct Tcp {
    /// Mean deviation of the round trip in microseconds.
    pub round_trip_deviation_micros: u32,
    /// Segments that were sent again.
    pub retransmitted: u32,
    /// Segments that were sent and not acknowledged.
    pub unacknowledged: u32,
    /// Bytes in the socket that were not sent yet; null if the system does not report them.
    pub unsent_bytes: Option<u32>,
    /// Segments that may be sent without an acknowledgement.
    pub congestion_window: u32,
    /// Milliseconds since the last data or acknowledgement from it.
    pub silent_millis: u32,
}

/// A will.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Will {
    /// Topic.
    pub topic: String,
    /// Quality of service.
    #[schema(maximum = 2)]
    pub qos: u8,
    /// It will be retained.
    pub retain: bool,
    /// Bytes of its payload.
    pub payload_bytes: u64,
    /// Seconds from the end of the connection until it is published.
    pub delay_secs: u32,
}

/// Parameters of a client in full.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ShowParameters {
    /// Milliseconds over which rates are measured.
    #[param(minimum = 1, maximum = 5000)]
    sample_ms: Option<u64>,
}

/// Shows a client in full.
#[utoipa::path(
    get,
    path = "/clients/{id}",
    operation_id = "show_client",
    tag = "clients",
    params(ClientId, ShowParameters),
    responses((status = 200, body = ClientDetail), NotFound, Asked),
)]
pub(super) async fn show(
    State(api): State<ApiState>,
    ClientId(client_id): ClientId,
    Parameters(ShowParameters { sample_ms }): Parameters<ShowParameters>,
) -> Result<Json<ClientDetail>, Problem> {
    let Some(millis) = sample_ms else {
        let found = read(api, &client_id).await?;
        return Ok(Json(found.into()));
    };
    if !(1..=SAMPLE_MILLIS_MAX).contains(&millis) {
        let what = format!("sample_ms is a number from 1 to {SAMPLE_MILLIS_MAX}, not {millis}");
        return Err(Problem::bad_request(what));
    }
    let before = read(api.clone(), &client_id).await?;
    sleep(Duration::from_millis(millis)).await;
    let after = read(api, &client_id).await?;
    let rates = Rates::between(&before, &after);
    Ok(Json(ClientDetail {
        rates,
        ..after.into()
    }))
}

async fn read(api: ApiState, client_id: &str) -> Result<SessionDetail, Problem> {
    let name = client_id.to_owned();
    let found = api.query(move |queries| queries.session(&name)).await?;
    found.ok_or_else(|| Problem::no_client(client_id))
}

impl Rates {
    /// The rates between two readings of the same connection.
    fn between(before: &SessionDetail, after: &SessionDetail) -> Option<Self> {
        let millis = after
            .at
            .checked_sub(before.at)
            .filter(|millis| *millis > 0)?;
        if before.row.presence != after.row.presence || after.connection.is_none() {
            return None;
        }
        let of = |before: u64, after: u64| per_second(after.saturating_sub(before), millis);
        let (one, other) = (&before.row, &after.row);
        let tcp = |detail: &SessionDetail| detail.connection.as_ref().and_then(|one| one.tcp);
        let both = tcp(before).zip(tcp(after));
        let bytes = |value: fn(&TcpCounts) -> u64| {
            both.map(|(before, after)| of(value(&before), value(&after)))
        };
        Some(Self {
            millis,
            messages_received: of(one.messages_received.into(), other.messages_received.into()),
            messages_sent: of(one.messages_sent.into(), other.messages_sent.into()),
            bytes_received: bytes(|tcp| tcp.bytes_received),
            bytes_sent: bytes(|tcp| tcp.bytes_sent),
        })
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a rate need not be exact beyond 53 bits"
)]
fn per_second(count: u64, millis: u64) -> f64 {
    count as f64 * 1000.0 / millis as f64
}

impl From<SessionDetail> for ClientDetail {
    fn from(detail: SessionDetail) -> Self {
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
            limits: Some(detail.limits.into()),
            rates: None,
            will: detail.will.map(Will::from),
            subscription_list: subscriptions.map(Subscription::from).collect(),
            dropped: by_reason(detail.dropped),
            refused: by_reason(detail.refused),
        }
    }
}

fn by_reason(counts: Vec<(&'static str, u64)>) -> Vec<Dropped> {
    let counts = counts.into_iter();
    counts
        .map(|(reason, messages)| Dropped {
            reason: reason.to_owned(),
            messages,
        })
        .collect()
}

impl From<ConnectionDetail> for Connection {
    fn from(detail: ConnectionDetail) -> Self {
        let limited = detail.limited.into_iter();
        let certificate = detail.certificate.as_deref();
        Self {
            scheme: detail.scheme.map(ToOwned::to_owned),
            keep_alive_secs: detail.keep_alive_secs,
            certificate: certificate.map(|certificate| certificate.subject.to_string()),
            certificate_details: certificate.map(ClientCertificate::from),
            bytes_received: detail.tcp.map(|tcp| tcp.bytes_received),
            bytes_sent: detail.tcp.map(|tcp| tcp.bytes_sent),
            round_trip_micros: detail.tcp.map(|tcp| tcp.round_trip_micros),
            tcp: detail.tcp.map(Tcp::from),
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

impl From<SessionLimits> for Limits {
    fn from(limits: SessionLimits) -> Self {
        Self {
            subscriptions: limits.subscriptions,
            receive_maximum: limits.receive_maximum,
            inflight: limits.inflight,
            packet_bytes: limits.packet_bytes,
            payload_bytes: limits.payload_bytes,
            queue_age_secs: limits.queue_age_secs,
        }
    }
}

impl From<TcpCounts> for Tcp {
    fn from(counts: TcpCounts) -> Self {
        Self {
            round_trip_deviation_micros: counts.round_trip_deviation_micros,
            retransmitted: counts.retransmitted,
            unacknowledged: counts.unacknowledged,
            unsent_bytes: counts.unsent_bytes,
            congestion_window: counts.congestion_window,
            silent_millis: counts.silent_millis,
        }
    }
}

impl From<&Certificate> for ClientCertificate {
    fn from(certificate: &Certificate) -> Self {
        let names = [
            &certificate.dns_names,
            &certificate.emails,
            &certificate.uris,
        ];
        let names = names.into_iter().flatten();
        let mut sha256 = String::new();
        for byte in certificate.fingerprint {
            sha256.extend([format!("{byte:02x}")]);
        }
        Self {
            subject: certificate.subject.to_string(),
            common_name: certificate.common_name.as_deref().map(str::to_owned),
            alternative_names: names.map(ToString::to_string).collect(),
            serial: certificate.serial.to_string(),
            sha256,
        }
    }
}
