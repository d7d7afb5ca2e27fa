//! MQTT bytes in the frames of a client.

use aws_lc_rs::rand;
use thrum_codec::VARIABLE_MAX;
use thrum_codec::websocket::{CLOSE_NORMAL, Control, FrameReader, Opcode, Role, encode_frame};

use crate::error::LayerError;
use crate::websocket::mask_keys::MaskKeys;
use crate::websocket::upgrade::{Request, Upgrade};

/// Payload of a frame that a server may send: the largest packet with its fixed header.
const FRAME_BYTES_MAX: u64 = VARIABLE_MAX as u64 + 5;

/// Payload of a frame to send; some servers take no longer ones. A longer packet goes in several
/// messages, for packets need not begin or end with one. [MQTT-6.0.0-2] [MQTT3-6.0.0-2]
const SEND_BYTES_MAX: usize = 65_535;

/// The client's end of one WebSocket.
pub(crate) struct WebSocket {
    /// None once the handshake is done.
    upgrade: Option<Box<Upgrade>>,
    reader: FrameReader,
    keys: MaskKeys,
    close_sent: bool,
}

impl WebSocket {
    /// Appends the request of the opening handshake.
    pub(crate) fn start(request: &Request, wire_out: &mut Vec<u8>) -> Result<Self, LayerError> {
        let (mut key, mut seed) = ([0; 16], [0; 8]);
        rand::fill(&mut key).map_err(|_| LayerError::Random)?;
        rand::fill(&mut seed).map_err(|_| LayerError::Random)?;
        Ok(Self {
            upgrade: Some(Box::new(request.send(key, wire_out))),
            reader: FrameReader::new(Role::Client, FRAME_BYTES_MAX),
            keys: MaskKeys::new(seed),
            close_sent: false,
        })
    }

    /// The opening handshake is done.
    pub(crate) const fn is_upgraded(&self) -> bool {
        self.upgrade.is_none()
    }

    /// The handshake is done and no end was sent.
    pub(crate) const fn is_open(&self) -> bool {
        self.is_upgraded() && !self.close_sent
    }

    /// The server has sent its close frame.
    pub(crate) const fn is_closed_by_peer(&self) -> bool {
        self.reader.is_closed()
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
        let result = self.read_frames(input, plain, wire_out);
        if let Err(LayerError::Frame(error)) = &result {
            self.send_close(error.close_code(), wire_out);
        }
        result
    }

    fn read_frames(
        &mut self,
        mut input: &[u8],
        plain: &mut Vec<u8>,
        wire_out: &mut Vec<u8>,
    ) -> Result<(), LayerError> {
        while let Some(control) = self.reader.read(&mut input, plain)? {
            match control {
                // Section 5.5.1: nothing is sent after the close frame.
                Control::Ping(payload) if !self.close_sent => {
                    encode_frame(Opcode::Pong, Some(self.keys.next()), payload, wire_out);
                }
                Control::Ping(_) | Control::Pong => {}
                Control::Close { code, .. } => {
                    self.send_close(code.unwrap_or(CLOSE_NORMAL), wire_out);
                }
            }
        }
        Ok(())
    }

    /// Appends payload as one frame, or several if it is long.
    pub(crate) fn send(&mut self, plain: &[u8], wire_out: &mut Vec<u8>) -> Result<(), LayerError> {
        if !self.is_open() {
            return Err(LayerError::NotOpen);
        }
        // [MQTT-6.0.0-1] [MQTT3-6.0.0-1]
        for part in plain.chunks(SEND_BYTES_MAX) {
            encode_frame(Opcode::Binary, Some(self.keys.next()), part, wire_out);
        }
        Ok(())
    }

    /// Appends the close frame, if the handshake is done and it was not sent before.
    pub(crate) fn close(&mut self, wire_out: &mut Vec<u8>) {
        if self.is_upgraded() {
            self.send_close(CLOSE_NORMAL, wire_out);
        }
    }

    fn send_close(&mut self, code: u16, wire_out: &mut Vec<u8>) {
        if !self.close_sent {
            self.close_sent = true;
            let key = Some(self.keys.next());
            encode_frame(Opcode::Close, key, &code.to_be_bytes(), wire_out);
        }
    }
}
