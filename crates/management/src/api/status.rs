//! `/status`: a summary of the broker.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use thrum_broker::{ConnectionCounts, Listening, Queries};
use utoipa::ToSchema;

use super::openapi::Asked;
use super::{ApiState, Problem};
use crate::timestamp::timestamp;

/// A summary of the broker.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// When the broker started.
    #[schema(format = DateTime)]
    pub started_at: String,
    /// Seconds since then.
    pub uptime_secs: u64,
    /// Worker threads.
    pub workers: usize,
    /// Clients that are connected.
    pub clients_connected: u64,
    /// Sessions, also those without a connection.
    pub sessions: u64,
    /// Sessions that outlive their connection.
    pub sessions_persistent: u64,
    /// Connections by state.
    pub connections: Connections,
    /// Subscriptions, shared ones included.
    pub subscriptions: u64,
    /// Retained messages of clients, without those of the broker.
    pub retained_messages: u64,
    /// Their memory.
    pub retained_bytes: u64,
    /// Memory of the process.
    pub memory: Memory,
    /// `healthy`, `full` or `failing`; null of a broker that keeps everything in memory.
    pub storage: Option<String>,
    /// Addresses that accept clients.
    pub listeners: Vec<Listener>,
}

/// Connections by state.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct Connections {
    /// The PROXY header or the handshake of TLS or WebSocket is not complete.
    pub in_handshake: u64,
    /// The broker waits for CONNECT.
    pub awaiting_connect: u64,
    /// The client is being authenticated.
    pub authenticating: u64,
    /// The client has a session.
    pub established: u64,
    /// The broker writes the last output.
    pub closing: u64,
}

/// Memory of the process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct Memory {
    /// Resident bytes; null if the system does not report them.
    pub resident_bytes: Option<u64>,
    /// `limits.memory`; null if there is none.
    pub limit_bytes: Option<u64>,
}

/// An address that accepts clients.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Listener {
    /// Name in the configuration.
    pub name: String,
    /// URL for clients.
    pub address: String,
}

/// Summarizes the state of the broker.
#[utoipa::path(
    get,
    path = "/status",
    operation_id = "show_status",
    tag = "status",
    responses((status = 200, body = Status), Asked),
)]
pub(super) async fn show(State(api): State<ApiState>) -> Result<Json<Status>, Problem> {
    let status = api.query(Queries::status).await?;
    let listeners = status.listeners.iter();
    Ok(Json(Status {
        version: status.version.to_owned(),
        started_at: timestamp(status.started_at),
        uptime_secs: status.uptime.as_secs(),
        workers: status.workers,
        clients_connected: status.clients_connected,
        sessions: status.sessions,
        sessions_persistent: status.sessions_persistent,
        connections: status.connections.into(),
        subscriptions: status.subscriptions,
        retained_messages: status.retained.messages,
        retained_bytes: status.retained.bytes,
        memory: Memory {
            resident_bytes: status.memory_bytes,
            limit_bytes: status.memory_limit_bytes,
        },
        storage: status.storage.map(ToOwned::to_owned),
        listeners: listeners.map(Listener::from).collect(),
    }))
}

impl From<ConnectionCounts> for Connections {
    fn from(counts: ConnectionCounts) -> Self {
        Self {
            in_handshake: counts.in_handshake,
            awaiting_connect: counts.awaiting_connect,
            authenticating: counts.authenticating,
            established: counts.established,
            closing: counts.closing,
        }
    }
}

impl From<&Listening> for Listener {
    fn from(listening: &Listening) -> Self {
        Self {
            name: listening.listener.clone(),
            address: listening.to_string(),
        }
    }
}
