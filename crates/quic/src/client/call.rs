//! The handshake of a client.

use std::net::SocketAddr;
use std::time::Duration;

use quinn::{
    ClientConfig, Connecting, Connection, ConnectionError, Endpoint, RecvStream, SendStream,
};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::DialError;

/// A connection and the stream that MQTT travels on.
pub(super) type Opened = (Connection, (SendStream, RecvStream));

/// A connection to be made.
pub(super) struct Call {
    pub(super) config: ClientConfig,
    /// The addresses of one server, each with the UDP socket to reach it from.
    pub(super) places: Vec<(SocketAddr, Endpoint)>,
    pub(super) server_name: String,
    /// How long it may take.
    pub(super) time: Duration,
}

impl Call {
    /// The first handshake that completes, and the stream of MQTT; the others are abandoned.
    pub(super) async fn open(self) -> Result<Opened, DialError> {
        let mut attempts = JoinSet::new();
        let mut failure = None;
        for (address, endpoint) in &self.places {
            match endpoint.connect_with(self.config.clone(), *address, &self.server_name) {
                Ok(connecting) => {
                    attempts.spawn(attempt(connecting));
                }
                Err(error) => failure = Some(DialError::Local(error.to_string())),
            }
        }
        let opening = first(attempts, failure, self.time);
        match timeout(self.time, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(DialError::NoAnswer(self.time)),
        }
    }
}

/// The first that completes; the last failure if there is none.
async fn first(
    mut attempts: JoinSet<Result<Opened, ConnectionError>>,
    mut failure: Option<DialError>,
    time: Duration,
) -> Result<Opened, DialError> {
    while let Some(attempt) = attempts.join_next().await {
        match attempt {
            Ok(Ok(opened)) => return Ok(opened),
            Ok(Err(error)) => failure = Some(DialError::from_handshake(&error, time)),
            // Only the end of the runtime aborts an attempt, together with this task.
            Err(_) => {}
        }
    }
    Err(failure.unwrap_or(DialError::NoAnswer(time)))
}

/// One handshake.
async fn attempt(connecting: Connecting) -> Result<Opened, ConnectionError> {
    let connection = connecting.await?;
    let stream = connection.open_bi().await?;
    Ok((connection, stream))
}
