//! The WebSocket of a client.

use aws_lc_rs::rand;

use crate::error::LayerError;
use crate::websocket::frames::Frames;
use crate::websocket::mask_keys::MaskKeys;
use crate::websocket::upgrade::{Request, Upgrade};

/// The client's end of one WebSocket.
pub(crate) struct WebSocket {
    /// None once the handshake is done.
    upgrade: Option<Box<Upgrade>>,
    frames: Frames,
}

impl WebSocket {
    /// Appends the request of the opening handshake.
    pub(crate) fn start(request: &Request, wire_out: &mut Vec<u8>) -> Result<Self, LayerError> {
        let (mut key, mut seed) = ([0; 16], [0; 8]);
        rand::fill(&mut key).map_err(|_| LayerError::Random)?;
        rand::fill(&mut seed).map_err(|_| LayerError::Random)?;
        Ok(Self {
            upgrade: Some(Box::new(request.send(key, wire_out))),
            frames: Frames::of_client(MaskKeys::new(seed)),
        })
    }

    /// The opening handshake is done.
    pub(crate) const fn is_upgraded(&self) -> bool {
        self.upgrade.is_none()
    }

    /// The handshake is done and no end was sent.
    pub(crate) const fn is_open(&self) -> bool {
        self.is_upgraded() && self.frames.is_open()
    }

    /// The server has sent its close frame.
    pub(crate) const fn is_closed_by_peer(&self) -> bool {
        self.frames.is_closed_by_peer()
    }

    /// Takes bytes of the server: payload goes to `plain`, pongs and the close frame to `wire_out`.
    pub(crate) fn receive(
        &mut self,
        wire_in: &[u8],
        plain: &mut Vec<u8>,
        wire_out: &mut Vec<u8>,
    ) -> Result<(), LayerError> {
        let mut input = wire_in;
        if let Some(upgrade) = &mut self.upgrade {
            let Some(rest) = upgrade.receive(wire_in)? else {
                return Ok(());
            };
            input = rest;
            self.upgrade = None;
        }
        self.frames.receive(input, plain, wire_out)
    }

    /// The sending side, once the handshake is done.
    pub(crate) fn frames(&mut self) -> Option<&mut Frames> {
        self.upgrade.is_none().then_some(&mut self.frames)
    }
}
