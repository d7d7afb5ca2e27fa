//! `/status`: the broker in one look.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use thrum_broker::{ConnectionCounts, Listening, Queries};

use super::{Problem, ask};
use crate::timestamp::timestamp;

/// The broker in one look.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// When the broker started.
    pub started_at: String,
    /// Seconds since then.
    pub uptime_secs: u64,
    /// Worker threads.
    pub workers: usize,
    /// Clients that are connected.
    pub clients_connected: u64,
    /// Sessions, those of clients that are away among them.
    pub sessions: u64,
    /// Sessions that outlive their connection.
    pub sessions_persistent: u64,
    /// Connections by how far they are.
    pub connections: Connections,
    /// Subscriptions, shared ones included.
    pub subscriptions: u64,
    /// Retained messages of clients.
    pub retained_messages: u64,
    /// Their memory.
    pub retained_bytes: u64,
    /// Memory of the process.
    pub memory: Memory,
    /// `healthy`, `full` or `failing`; null of a broker that keeps everything in memory.
    pub storage: Option<String>,
    /// Where clients may come in.
    pub listeners: Vec<Listener>,
}

/// Connections by how far they are.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Connections {
    /// The header of a proxy, TLS or WebSocket is not done.
    pub in_handshake: u64,
    /// No CONNECT has come.
    pub awaiting_connect: u64,
    /// They are being authenticated.
    pub authenticating: u64,
    /// They belong to a session.
    pub established: u64,
    /// They end.
    pub closing: u64,
}

/// Memory of the process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Memory {
    /// Resident bytes; null if the system does not tell.
    pub resident_bytes: Option<u64>,
    /// `limits.memory`; null if there is none.
    pub limit_bytes: Option<u64>,
}

/// A place where clients may come in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Listener {
    /// Name in the configuration.
    pub name: String,
    /// As a client writes it.
    pub address: String,
}

pub(super) async fn show(State(queries): State<Queries>) -> Result<Json<Status>, Problem> {
    let status = ask(queries, Queries::status).await?;
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
