//! The WebSocket of a server.
//!
//! No extension is negotiated. `permessage-deflate` would hold 32 KiB and more per connection in
//! each direction while it is idle, would compress a message once per subscriber instead of not at
//! all, and reveals by its lengths what secrets and chosen text have in common; MQTT's payloads are
//! small, and large ones are compressed by their publishers.

use crate::acceptor::AcceptorError;
use crate::client_fault::ClientFault;
use crate::error::LayerError;
use crate::peer_protocol::{OPENING_BYTES, protocol_of};
use crate::websocket::frames::{FRAME_BYTES_MAX, Frames};
use crate::websocket::origin::Origin;
use crate::websocket::request::{Refusal, answer};

/// The end of a head.
const BLANK_LINE: &[u8] = b"\r\n\r\n";

/// WebSocket options of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSocketOptions {
    /// Path that is answered; others get 404. A query behind it is ignored.
    pub path: String,
    /// Origins of web pages that may connect, as `https://app.example.org`; others get 403. Empty
    /// for any. Clients other than browsers send no origin, and need none: the check protects the
    /// users of browsers from foreign pages, it is not authentication.
    pub origins: Vec<String>,
    /// Longest frame of a client in bytes. Frames are handed on as they arrive, so a long one takes
    /// no memory.
    pub frame_bytes_max: u64,
    /// Longest head of a request in bytes, cookies included; it is held until it is complete.
    pub head_bytes_max: usize,
}

/// Validated options.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(super) path: Box<str>,
    pub(super) origins: Vec<Origin>,
    frame_bytes_max: u64,
    head_bytes_max: usize,
}

/// The server's end of one WebSocket.
pub(crate) struct ServerWebSocket {
    /// The received part of the request; none once it was answered.
    head: Option<Vec<u8>>,
    frames: Frames,
}

impl Default for WebSocketOptions {
    /// Path `/mqtt`, any origin, frames as long as the longest packet, heads of 8 KiB.
    fn default() -> Self {
        Self {
            path: "/mqtt".to_owned(),
            origins: Vec::new(),
            frame_bytes_max: FRAME_BYTES_MAX,
            head_bytes_max: 8 * 1024,
        }
    }
}

impl Terms {
    pub(crate) fn new(options: &WebSocketOptions) -> Result<Self, AcceptorError> {
        let is_path = options.path.starts_with('/')
            && options
                .path
                .chars()
                .all(|other| other.is_ascii_graphic() && !"?#".contains(other));
        if !is_path {
            return Err(AcceptorError::Path(options.path.clone()));
        }
        let origins = options
            .origins
            .iter()
            .map(|text| Origin::parse(text).ok_or_else(|| AcceptorError::Origin(text.clone())));
        Ok(Self {
            path: options.path.as_str().into(),
            origins: origins.collect::<Result<_, _>>()?,
            frame_bytes_max: options.frame_bytes_max,
            head_bytes_max: options.head_bytes_max,
        })
    }
}

impl ServerWebSocket {
    pub(crate) const fn new(terms: &Terms) -> Self {
        Self {
            head: Some(Vec::new()),
            frames: Frames::of_server(terms.frame_bytes_max),
        }
    }

    /// The opening handshake is done.
    pub(crate) const fn is_upgraded(&self) -> bool {
        self.head.is_none()
    }

    /// The handshake is done and no end was sent.
    pub(crate) const fn is_open(&self) -> bool {
        self.is_upgraded() && self.frames.is_open()
    }

    /// The client has sent its close frame.
    pub(crate) const fn is_closed_by_peer(&self) -> bool {
        self.frames.is_closed_by_peer()
    }

    /// The sending side, once the handshake is done.
    pub(crate) fn frames(&mut self) -> Option<&mut Frames> {
        self.head.is_none().then_some(&mut self.frames)
    }

    /// Takes bytes of the client: payload goes to `plain`; the answer, pongs and the close frame to
    /// `wire_out`.
    pub(crate) fn receive(
        &mut self,
        terms: &Terms,
        wire_in: &[u8],
        plain: &mut Vec<u8>,
        wire_out: &mut Vec<u8>,
    ) -> Result<(), LayerError> {
        let mut input = wire_in;
        if let Some(head) = &mut self.head {
            let Some(taken) = hold(head, wire_in, terms.head_bytes_max, wire_out)? else {
                return Ok(());
            };
            answer(head, terms, wire_out)?;
            input = wire_in.get(taken..).unwrap_or_default();
            self.head = None;
        }
        let result = self.frames.receive(input, plain, wire_out);
        result.map_err(|error| match error {
            LayerError::Frame(error) => ClientFault::Frame(error).into(),
            error => error,
        })
    }
}

/// Holds bytes up to the end of the head; returns how many were taken, once it is complete.
fn hold(
    head: &mut Vec<u8>,
    wire_in: &[u8],
    bytes_max: usize,
    wire_out: &mut Vec<u8>,
) -> Result<Option<usize>, LayerError> {
    let held = head.len();
    let space = bytes_max.saturating_sub(held);
    head.extend_from_slice(wire_in.get(..space).unwrap_or(wire_in));
    // Bytes that are not a request never end as one.
    let is_request = head.first().is_none_or(u8::is_ascii_uppercase);
    if !is_request || is_proxy_header(head) {
        if head.len() < OPENING_BYTES {
            return Ok(None);
        }
        return Err(ClientFault::NotHttp(protocol_of(head)).into());
    }
    // The blank line may have begun in the held bytes.
    let from = held.saturating_sub(BLANK_LINE.len() - 1);
    let fresh = head.get(from..).unwrap_or_default();
    let found = fresh
        .windows(BLANK_LINE.len())
        .position(|window| window == BLANK_LINE);
    if let Some(position) = found {
        let end = from + position + BLANK_LINE.len();
        head.truncate(end);
        return Ok(Some(end - held));
    }
    if head.len() >= bytes_max {
        return Err(Refusal::head_too_long(bytes_max).send(wire_out));
    }
    Ok(None)
}

/// Its first line does not end as a request's does, so the missing blank line would go unnoticed.
fn is_proxy_header(head: &[u8]) -> bool {
    head.starts_with(b"PROXY ")
}
