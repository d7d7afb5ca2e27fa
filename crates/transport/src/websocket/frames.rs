//! The stream of frames of one WebSocket, for both ends.

use thrum_codec::VARIABLE_MAX;
use thrum_codec::websocket::{
    CLOSE_NORMAL, Control, FrameReader, Header, Opcode, Role, apply_mask, encode_frame,
};

use crate::error::LayerError;
use crate::pieces::Pieces;
use crate::websocket::mask_keys::MaskKeys;

/// Payload of a frame that a peer may send: the largest packet with its fixed header.
pub(crate) const FRAME_BYTES_MAX: u64 = VARIABLE_MAX as u64 + 5;

/// Payload of a frame to send; some peers accept no longer ones, and with the longest header it
/// fills four records of TLS. A longer packet goes in several messages, because packets need not
/// begin or end with one. [MQTT-6.0.0-2] [MQTT3-6.0.0-2]
const SEND_BYTES_MAX: usize = 64 * 1024 - HEADER_BYTES_MAX;

/// Two bytes, a length of two bytes, and a masking key.
const HEADER_BYTES_MAX: usize = 8;

/// Frames of one connection, once the opening handshake is done.
pub(crate) struct Frames {
    reader: FrameReader,
    /// Only a client masks.
    keys: Option<MaskKeys>,
    close_sent: bool,
}

impl Frames {
    pub(super) const fn of_client(keys: MaskKeys) -> Self {
        Self {
            reader: FrameReader::new(Role::Client, FRAME_BYTES_MAX),
            keys: Some(keys),
            close_sent: false,
        }
    }

    pub(super) const fn of_server(frame_bytes_max: u64) -> Self {
        Self {
            reader: FrameReader::new(Role::Server, frame_bytes_max),
            keys: None,
            close_sent: false,
        }
    }

    /// No end was sent.
    pub(super) const fn is_open(&self) -> bool {
        !self.close_sent
    }

    /// The peer has sent its close frame.
    pub(super) const fn is_closed_by_peer(&self) -> bool {
        self.reader.is_closed()
    }

    /// Takes bytes of the peer: payload goes to `plain`, pongs and the close frame to `wire_out`.
    pub(super) fn receive(
        &mut self,
        wire_in: &[u8],
        plain: &mut Vec<u8>,
        wire_out: &mut Vec<u8>,
    ) -> Result<(), LayerError> {
        let mut input = wire_in;
        loop {
            match self.reader.read(&mut input, plain) {
                Ok(None) => return Ok(()),
                // Section 5.5.1: nothing is sent after the close frame.
                Ok(Some(Control::Ping(payload))) if !self.close_sent => {
                    let key = self.keys.as_mut().map(MaskKeys::next);
                    encode_frame(Opcode::Pong, key, payload, wire_out);
                }
                Ok(Some(Control::Ping(_) | Control::Pong)) => {}
                Ok(Some(Control::Close { code, .. })) => {
                    self.send_close(code.unwrap_or(CLOSE_NORMAL), wire_out);
                }
                Err(error) => {
                    self.send_close(error.close_code(), wire_out);
                    return Err(LayerError::Frame(error));
                }
            }
        }
    }

    /// Appends the next payload as one frame; false if there is none.
    ///
    /// Its length is known only afterwards, so the header is put before it then.
    pub(crate) fn append<'p>(
        &mut self,
        pieces: &mut Pieces<'p, impl Iterator<Item = &'p [u8]>>,
        wire_out: &mut Vec<u8>,
    ) -> bool {
        if pieces.is_empty() {
            return false;
        }
        let header_start = wire_out.len();
        let mask = self.keys.as_mut().map(MaskKeys::next);
        let mut header = Header {
            fin: true,
            // [MQTT-6.0.0-1] [MQTT3-6.0.0-1]
            opcode: Opcode::Binary,
            mask,
            payload_bytes: SEND_BYTES_MAX as u64,
        };
        header.encode(wire_out);
        let start = wire_out.len();
        let count = pieces.fill(SEND_BYTES_MAX, wire_out);
        if let (Some(mask), Some(payload)) = (mask, wire_out.get_mut(start..)) {
            apply_mask(mask, 0, payload);
        }
        header.payload_bytes = count as u64;
        let end = wire_out.len();
        header.encode(wire_out);
        let header_bytes = wire_out.len() - end;
        // A short length takes two bytes less.
        wire_out.copy_within(end.., header_start);
        wire_out.truncate(end);
        wire_out.drain(header_start + header_bytes..start);
        true
    }

    /// Appends the close frame, unless it was sent before.
    pub(crate) fn close(&mut self, wire_out: &mut Vec<u8>) {
        self.send_close(CLOSE_NORMAL, wire_out);
    }

    fn send_close(&mut self, code: u16, wire_out: &mut Vec<u8>) {
        if !self.close_sent {
            self.close_sent = true;
            let key = self.keys.as_mut().map(MaskKeys::next);
            encode_frame(Opcode::Close, key, &code.to_be_bytes(), wire_out);
        }
    }
}
