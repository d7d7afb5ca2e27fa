//! What the screen shows.

/// Figures of a broker and its busiest clients at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopSnapshot {
    /// The broker, as it was named.
    pub place: String,
    /// Why there are no new figures; empty if there are.
    pub trouble: String,
    /// The figures.
    pub figures: TopFigures,
    /// Messages from clients in a second, the newest last.
    pub received: Vec<f64>,
    /// Messages to clients in a second.
    pub sent: Vec<f64>,
    /// Dropped messages in a second.
    pub dropped: Vec<f64>,
    /// Clients in the order of the screen.
    pub clients: Vec<TopClient>,
    /// Clients that match the filter.
    pub matching: u64,
}

/// Figures of the whole broker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopFigures {
    /// Version of the broker.
    pub version: String,
    /// Seconds since its start.
    pub uptime_secs: u64,
    /// Connected clients.
    pub connected: u64,
    /// Sessions, with and without a connection.
    pub sessions: u64,
    /// Subscriptions.
    pub subscriptions: u64,
    /// Retained messages.
    pub retained: u64,
    /// Resident memory, if it is known.
    pub memory_bytes: Option<u64>,
    /// The limit of it, if there is one.
    pub memory_bytes_max: Option<u64>,
    /// Bytes from clients in a second.
    pub bytes_received: f64,
    /// Bytes to clients in a second.
    pub bytes_sent: f64,
}

/// A client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopClient {
    /// Client identifier, without characters that control the terminal.
    pub client_id: String,
    /// Client identifier as it is.
    pub id: String,
    /// User.
    pub user: String,
    /// It is connected.
    pub is_connected: bool,
    /// Messages from it in a second; none before the second look.
    pub received: Option<f64>,
    /// Messages to it in a second.
    pub sent: Option<f64>,
    /// Messages in its queue.
    pub queued: u64,
    /// Messages that it has not acknowledged.
    pub inflight: u64,
    /// Messages that it did not get.
    pub dropped: u64,
    /// Its problems.
    pub problems: String,
}
