//! The layers of one connection, one above the other.

use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;

use crate::connector::Shared;
use crate::error::LayerError;
use crate::stack;
use crate::tls::{Session, TlsSummary};
use crate::websocket::WebSocket;

/// TLS, WebSocket or both between MQTT and the wire of one connection.
///
/// After an error the caller sends what is in `wire_out`, an alert or a close frame, and closes
/// the socket.
pub struct Layers {
    shared: Arc<Shared>,
    /// None before the start and without TLS.
    tls: Option<Box<Session<UnbufferedClientConnection>>>,
    /// None before TLS is open and without WebSocket.
    websocket: Option<WebSocket>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    Started,
    Failed,
}

impl Layers {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            tls: None,
            websocket: None,
            stage: Stage::New,
        }
    }

    /// Appends the first bytes to send once the socket is connected; called once.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn start(&mut self, wire_out: &mut Vec<u8>) -> Result<(), LayerError> {
        self.stage = Stage::Started;
        if let Some(tls) = &self.shared.tls {
            let (config, name) = (Arc::clone(&tls.config), tls.server_name.clone());
            let connection =
                UnbufferedClientConnection::new(config, name).map_err(LayerError::Tls)?;
            let session = Box::new(Session::new(connection));
            return self.tls.insert(session).start(wire_out);
        }
        if let Some(request) = &self.shared.request {
            self.websocket = Some(WebSocket::start(request, wire_out)?);
        }
        Ok(())
    }

    /// All handshakes are done, nothing is closed and nothing has failed: MQTT may flow.
    pub fn is_open(&self) -> bool {
        self.stage == Stage::Started
            && self.shared.tls.is_some() == self.tls.as_ref().is_some_and(|tls| tls.is_open())
            && self.shared.request.is_some()
                == self.websocket.as_ref().is_some_and(WebSocket::is_open)
    }

    /// The server has announced, in TLS or WebSocket, that it sends no more.
    pub fn is_closed_by_peer(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_closed_by_peer())
            || self
                .websocket
                .as_ref()
                .is_some_and(WebSocket::is_closed_by_peer)
    }

    /// The error if the socket ends now; none once MQTT could flow.
    pub fn cut_off(&self) -> Option<LayerError> {
        let in_tls = self.shared.tls.is_some() && self.tls().is_none();
        let upgraded = self.websocket.as_ref().is_some_and(WebSocket::is_upgraded);
        match (in_tls, self.shared.request.is_some() && !upgraded) {
            (true, _) => Some(LayerError::CutOff("TLS")),
            (false, true) => Some(LayerError::CutOff("WebSocket")),
            (false, false) => None,
        }
    }

    /// Takes bytes of the wire: MQTT goes to `plain`, handshakes, pongs and ends to `wire_out`.
    ///
    /// Memory: `plain` grows by at most the bytes of `wire_in`, and the bytes held of a previous
    /// record. `wire_in` is decrypted in place: its contents are undefined afterwards.
    ///
    /// # Errors
    /// The server cannot be trusted or breaks a protocol. `plain` may have grown before that.
    pub fn receive(
        &mut self,
        wire_in: &mut [u8],
        plain: &mut Vec<u8>,
        wire_out: &mut Vec<u8>,
    ) -> Result<(), LayerError> {
        if self.stage != Stage::Started {
            return Err(LayerError::NotOpen);
        }
        let result = self.pass_up(wire_in, plain, wire_out);
        if result.is_err() {
            self.stage = Stage::Failed;
        }
        result
    }

    /// Bytes of the wire through every layer.
    fn pass_up(
        &mut self,
        wire_in: &mut [u8],
        plain: &mut Vec<u8>,
        wire_out: &mut Vec<u8>,
    ) -> Result<(), LayerError> {
        let Some(tls) = &mut self.tls else {
            let websocket = self.websocket.as_mut().ok_or(LayerError::NotOpen)?;
            return websocket.receive(wire_in, plain, wire_out);
        };
        let Some(request) = &self.shared.request else {
            return tls.receive(wire_in, wire_out, &mut |payload| {
                plain.extend_from_slice(payload);
                Ok(())
            });
        };
        let websocket = &mut self.websocket;
        let mut answers = Vec::new();
        let result = tls.receive(wire_in, wire_out, &mut |payload| match websocket {
            Some(websocket) => websocket.receive(payload, plain, &mut answers),
            // A server does not send first.
            None => Err(LayerError::NotHttp),
        });
        if result.is_ok() && websocket.is_none() && tls.is_open() {
            *websocket = Some(WebSocket::start(request, &mut answers)?);
        }
        if answers.is_empty() {
            return result;
        }
        let sent = tls.send_run(&answers, wire_out);
        result.and(sent)
    }

    /// Appends MQTT in its form on the wire.
    ///
    /// # Errors
    /// The handshakes are not done, or the connection is closed.
    pub fn send(&mut self, plain: &[u8], wire_out: &mut Vec<u8>) -> Result<(), LayerError> {
        if !self.is_open() {
            return Err(LayerError::NotOpen);
        }
        let frames = self.websocket.as_mut().and_then(WebSocket::frames);
        let pieces = std::iter::once(plain);
        stack::send(self.tls.as_deref_mut(), frames, pieces, wire_out)
    }

    /// Appends the close frame and the close alert; nothing is sent after them, nor after an error.
    pub fn close(&mut self, wire_out: &mut Vec<u8>) {
        if self.stage != Stage::Started {
            return;
        }
        let frames = self.websocket.as_mut().and_then(WebSocket::frames);
        stack::close(self.tls.as_deref_mut(), frames, wire_out);
    }

    /// The outcome of the TLS handshake; none before it is done and without TLS.
    pub fn tls(&self) -> Option<TlsSummary> {
        self.tls.as_ref()?.summary()
    }
}

impl std::fmt::Debug for Layers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Layers")
            .field("tls", &self.tls())
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}
