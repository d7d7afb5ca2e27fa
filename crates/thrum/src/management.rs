//! The control socket of a broker with a data directory.

use std::path::Path;

use thrum_broker::Broker;
use thrum_management::ControlSocket;

use crate::command::failure::with_causes;

/// The management interface of a broker.
#[derive(Debug)]
pub(crate) struct Management {
    /// None without a data directory.
    socket: Option<ControlSocket>,
}

impl Management {
    /// Opens the control socket in the data directory.
    ///
    /// # Errors
    /// Another process listens there. Any other failure is logged, and the broker runs without a
    /// control socket.
    pub(crate) fn start(data_dir: &Path, broker: &Broker) -> anyhow::Result<Self> {
        if data_dir.as_os_str().is_empty() {
            tracing::debug!(
                "there is no control socket: the broker has no data directory (node.data_dir)"
            );
            return Ok(Self { socket: None });
        }
        match ControlSocket::start(data_dir, broker.queries()) {
            Ok(socket) => {
                tracing::debug!(path = %socket.path().display(), "control socket opened");
                Ok(Self {
                    socket: Some(socket),
                })
            }
            Err(error) if error.is_in_use() => Err(error.into()),
            Err(error) => {
                let error = with_causes(&error);
                tracing::warn!(
                    error,
                    "thrum clients and thrum status cannot ask this broker"
                );
                Ok(Self { socket: None })
            }
        }
    }

    /// Closes the control socket.
    pub(crate) fn stop(self) {
        if let Some(socket) = self.socket {
            socket.stop();
        }
    }
}
