//! The client's end of a WebSocket, as bytes: the request, then frames that are masked with zeros.

use super::world::Failure;

const REQUEST: &[u8] = b"GET /mqtt HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Version: 13\r\n\r\n";
const SWITCHING: &[u8] = b"HTTP/1.1 101 ";
const BINARY: u8 = 0x82;
pub(crate) const CLOSE: u8 = 0x88;
pub(crate) const PING: u8 = 0x89;
pub(crate) const PONG: u8 = 0x8A;
const MASKED: u8 = 0x80;

/// Received bytes that are not MQTT yet.
#[derive(Debug, Default)]
pub(crate) struct WebSocket {
    is_open: bool,
    wire: Vec<u8>,
}

impl WebSocket {
    /// The first bytes of a client.
    pub(crate) fn request() -> Vec<u8> {
        REQUEST.to_vec()
    }

    /// Returns one whose handshake is complete.
    pub(crate) fn opened() -> Self {
        Self {
            is_open: true,
            wire: Vec::new(),
        }
    }

    /// A frame with these bytes of MQTT.
    pub(crate) fn wrap(bytes: &[u8], wire: &mut Vec<u8>) {
        Self::frame(BINARY, bytes, wire);
    }

    /// A frame of any kind.
    pub(crate) fn frame(first: u8, bytes: &[u8], wire: &mut Vec<u8>) {
        wire.push(first);
        match u16::try_from(bytes.len()) {
            Ok(len) if len < 126 => wire.push(MASKED + len.to_be_bytes()[1]),
            Ok(len) => {
                wire.push(MASKED + 126);
                wire.extend_from_slice(&len.to_be_bytes());
            }
            Err(_) => {
                wire.push(MASKED + 127);
                wire.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
            }
        }
        wire.extend_from_slice(&[0; 4]);
        wire.extend_from_slice(bytes);
    }

    /// Decodes bytes of the socket into MQTT bytes.
    pub(crate) fn unwrap(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), Failure> {
        self.wire.extend_from_slice(bytes);
        if !self.is_open {
            let Some(end) = self.wire.windows(4).position(|four| four == b"\r\n\r\n") else {
                return Ok(());
            };
            if !self.wire.starts_with(SWITCHING) {
                return Err("the WebSocket is refused".to_owned());
            }
            self.wire.drain(..end + 4);
            self.is_open = true;
        }
        while let Some((first, head, len)) = self.head() {
            if self.wire.len() < head + len {
                break;
            }
            match first {
                BINARY => plain.extend_from_slice(&self.wire[head..head + len]),
                CLOSE => {}
                other => return Err(format!("an unexpected frame: {other:#x}")),
            }
            self.wire.drain(..head + len);
        }
        Ok(())
    }

    /// The first byte, the length of the head and of the payload, if the head is complete.
    fn head(&self) -> Option<(u8, usize, usize)> {
        let [first, len, rest @ ..] = &*self.wire else {
            return None;
        };
        let (head, len) = match len {
            126 => (4, u64::from(u16::from_be_bytes(*rest.first_chunk()?))),
            127 => (10, u64::from_be_bytes(*rest.first_chunk()?)),
            len => (2, u64::from(*len)),
        };
        Some((*first, head, usize::try_from(len).ok()?))
    }
}
