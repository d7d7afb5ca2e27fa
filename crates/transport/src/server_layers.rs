//! The layers of one accepted connection, one above the other.

use std::sync::Arc;

use thrum_access::Certificate;

use crate::acceptor::Accepting;
use crate::client_fault::ClientFault;
use crate::error::LayerError;
use crate::stack;
use crate::tls::{ServerSession, TlsSummary};
use crate::websocket::ServerWebSocket;

/// TLS, WebSocket or both between MQTT and the wire of one accepted connection.
///
/// Bytes of the socket go to [`receive`](Self::receive), MQTT output to [`send`](Self::send), and
/// the bytes that either appends to `wire_out` go to the socket, in this order. After an error the
/// caller sends the contents of `wire_out` (an alert, a close frame, the status of a refusal) and
/// closes the socket.
pub struct ServerLayers {
    shared: Arc<Accepting>,
    /// None before the first bytes and without TLS.
    tls: Option<Box<ServerSession>>,
    /// None before the first bytes and without WebSocket.
    websocket: Option<Box<ServerWebSocket>>,
    failed: bool,
}

impl ServerLayers {
    pub(crate) const fn new(shared: Arc<Accepting>) -> Self {
        Self {
            shared,
            tls: None,
            websocket: None,
            failed: false,
        }
    }

    /// All handshakes are done, nothing is closed and nothing has failed: MQTT may flow.
    pub fn is_open(&self) -> bool {
        let tls = self.tls.as_ref();
        let websocket = self.websocket.as_ref();
        !self.failed
            && self.shared.tls.is_some() == tls.is_some_and(|tls| tls.session.is_open())
            && self.shared.websocket.is_some()
                == websocket.is_some_and(|websocket| websocket.is_open())
    }

    /// The client has announced, in TLS or WebSocket, that it sends no more. Its earlier bytes are
    /// in `plain`; a close frame is answered, and the socket can be closed once that was sent.
    pub fn is_closed_by_peer(&self) -> bool {
        let tls = self.tls.as_ref();
        let websocket = self.websocket.as_ref();
        tls.is_some_and(|tls| tls.session.is_closed_by_peer())
            || websocket.is_some_and(|websocket| websocket.is_closed_by_peer())
    }

    /// The client has violated a protocol: no more of its bytes are accepted.
    pub const fn has_failed(&self) -> bool {
        self.failed
    }

    /// Takes bytes of the wire: MQTT is appended to `plain`; handshakes, pongs and ends to
    /// `wire_out`.
    ///
    /// `wire_in` is decrypted in place and its contents are undefined afterwards. `plain` grows by
    /// at most the bytes of `wire_in`, and the bytes held of a previous record: 32 KiB at most. All
    /// bytes of a stream may arrive in one call or each in its own.
    ///
    /// # Errors
    /// The client is not trusted or violates a protocol, most often as [`LayerError::Client`].
    /// `plain` may have grown before that: those bytes preceded the error.
    pub fn receive(
        &mut self,
        wire_in: &mut [u8],
        plain: &mut Vec<u8>,
        wire_out: &mut Vec<u8>,
    ) -> Result<(), LayerError> {
        if self.failed {
            return Err(LayerError::NotOpen);
        }
        let before = plain.len();
        let result = self.pass_up(wire_in, plain, wire_out);
        self.failed = result.is_err();
        if let Err(LayerError::Client(ClientFault::CertificateOutOfDate { .. })) = result {
            // For a resumed session that is known only once the handshake is done, and the bytes
            // right behind it must not be accepted.
            plain.truncate(before);
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
        if let (Some(terms), None) = (&self.shared.websocket, &self.websocket) {
            self.websocket = Some(Box::new(ServerWebSocket::new(terms)));
        }
        let websocket = self.shared.websocket.as_ref().zip(self.websocket.as_mut());
        let Some(of_listener) = &self.shared.tls else {
            let (terms, websocket) = websocket.ok_or(LayerError::NotOpen)?;
            return websocket.receive(terms, wire_in, plain, wire_out);
        };
        let tls = match &mut self.tls {
            Some(tls) => tls,
            none => none.insert(Box::new(ServerSession::new(Arc::clone(
                &of_listener.config,
            ))?)),
        };
        let Some((terms, websocket)) = websocket else {
            return tls.receive(wire_in, wire_out, &mut |payload| {
                plain.extend_from_slice(payload);
                Ok(())
            });
        };
        let mut answers = Vec::new();
        let result = tls.receive(wire_in, wire_out, &mut |payload| {
            websocket.receive(terms, payload, plain, &mut answers)
        });
        if answers.is_empty() {
            return result;
        }
        let sent = tls.session.send_run(&answers, wire_out);
        result.and(sent)
    }

    /// Appends MQTT in its form on the wire, in as few frames and records as possible: bytes that
    /// are sent at once are one frame in one record up to 16 KiB.
    ///
    /// Memory: `wire_out` needs room for the payload twice up to 64 KiB of it, in addition to its
    /// bytes on the wire.
    ///
    /// # Errors
    /// The handshakes are not done, the connection is closed, or its keys are used up.
    pub fn send<'p>(
        &mut self,
        pieces: impl IntoIterator<Item = &'p [u8]>,
        wire_out: &mut Vec<u8>,
    ) -> Result<(), LayerError> {
        if !self.is_open() {
            return Err(LayerError::NotOpen);
        }
        let tls = self.tls.as_mut().map(|tls| &mut tls.session);
        let frames = self.websocket.as_mut().and_then(|it| it.frames());
        stack::send(tls, frames, pieces.into_iter(), wire_out)
    }

    /// Appends the close frame and the close alert; nothing is sent after them, nor after an error.
    pub fn close(&mut self, wire_out: &mut Vec<u8>) {
        if self.failed {
            return;
        }
        let tls = self.tls.as_mut().map(|tls| &mut tls.session);
        let frames = self.websocket.as_mut().and_then(|it| it.frames());
        stack::close(tls, frames, wire_out);
    }

    /// The outcome of the TLS handshake; none before it is done and without TLS.
    pub fn tls(&self) -> Option<TlsSummary> {
        self.tls.as_ref()?.summary()
    }

    /// The client's verified certificate; none before the handshake is done and if it has presented
    /// none. It is parsed at every call, for some microseconds: keep it.
    pub fn certificate(&self) -> Option<Arc<Certificate>> {
        self.tls.as_ref()?.certificate()
    }
}

impl std::fmt::Debug for ServerLayers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ServerLayers")
            .field("tls", &self.tls())
            .field("is_open", &self.is_open())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
