//! The handshake of a client.

use std::net::SocketAddr;
use std::time::Duration;

use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, RecvStream, SendStream};
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use super::DialError;

/// A connection to be.
pub(super) struct Call {
    pub(super) config: ClientConfig,
    /// The addresses of one server, each with the UDP socket to reach it from.
    pub(super) places: Vec<(SocketAddr, Endpoint)>,
    pub(super) server_name: String,
    /// How long it may take.
    pub(super) time: Duration,
}

impl Call {
    /// The first handshake that is done, and the stream that MQTT travels on; the others are given up.
    pub(super) async fn open(self) -> Result<(Connection, (SendStream, RecvStream)), DialError> {
        let mut attempts = JoinSet::new();
        let mut failure = None;
        for (address, endpoint) in &self.places {
            match endpoint.connect_with(self.config.clone(), *address, &self.server_name) {
                Ok(connecting) => {
                    attempts.spawn(connecting);
                }
                Err(error) => failure = Some(DialError::Local(error.to_string())),
            }
        }
        let opening = first_open(attempts, failure, self.time);
        match timeout(self.time, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(DialError::NoAnswer(self.time)),
        }
    }
}

type Attempts = JoinSet<Result<Connection, ConnectionError>>;

async fn first_open(
    mut attempts: Attempts,
    mut failure: Option<DialError>,
    time: Duration,
) -> Result<(Connection, (SendStream, RecvStream)), DialError> {
    while let Some(attempt) = attempts.join_next().await {
        match with_stream(attempt).await {
            Some(Ok(opened)) => return Ok(opened),
            Some(Err(error)) => failure = Some(DialError::from_handshake(&error, time)),
            None => {}
        }
    }
    Err(failure.unwrap_or(DialError::NoAnswer(time)))
}

/// The stream of a handshake that is done; none if the runtime ends, with all of us.
async fn with_stream(
    attempt: Result<Result<Connection, ConnectionError>, JoinError>,
) -> Option<Result<(Connection, (SendStream, RecvStream)), ConnectionError>> {
    let connection = match attempt.ok()? {
        Ok(connection) => connection,
        Err(error) => return Some(Err(error)),
    };
    let stream = connection.open_bi().await;
    Some(stream.map(|stream| (connection, stream)))
}
