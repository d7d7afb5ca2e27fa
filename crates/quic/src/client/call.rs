//! The handshake of a client.

use std::net::SocketAddr;
use std::time::Duration;

use quinn::{ClientConfig, Connection, Endpoint, RecvStream, SendStream};
use tokio::task::JoinSet;
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
        let opening = async {
            while let Some(attempt) = attempts.join_next().await {
                // Nobody ends an attempt but the runtime, with all of us.
                let Ok(attempt) = attempt else { continue };
                let opened = match attempt {
                    Ok(connection) => connection
                        .open_bi()
                        .await
                        .map(|stream| (connection, stream)),
                    Err(error) => Err(error),
                };
                match opened {
                    Ok(opened) => return Ok(opened),
                    Err(error) => failure = Some(DialError::from_handshake(&error, self.time)),
                }
            }
            Err(failure.unwrap_or(DialError::NoAnswer(self.time)))
        };
        match timeout(self.time, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(DialError::NoAnswer(self.time)),
        }
    }
}
