//! Frame headers of RFC 6455 section 5.2, and complete frames to send.

use alloc::vec::Vec;

use crate::websocket::{FrameError, apply_mask};

/// The longest header in bytes: two, a length of eight, and the masking key.
pub const HEADER_BYTES_MAX: usize = 14;

/// The longest payload of a control frame in bytes, section 5.5.
pub const CONTROL_BYTES_MAX: usize = 125;

const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
/// Seven-bit lengths that announce an extended length of two or eight bytes.
const LENGTH_16: u8 = 126;
const LENGTH_64: u8 = 127;

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A further fragment of a message.
    Continuation,
    /// Text, or its first fragment.
    Text,
    /// Bytes, or their first fragment.
    Binary,
    /// The end of the connection.
    Close,
    /// A ping, which requires a pong.
    Ping,
    /// The answer to a ping, or an unsolicited heartbeat.
    Pong,
}

/// The header of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The last fragment of its message.
    pub fin: bool,
    /// The type of the frame.
    pub opcode: Opcode,
    /// The key that the payload is masked with.
    pub mask: Option<[u8; 4]>,
    /// Length of the payload.
    pub payload_bytes: u64,
}

impl Opcode {
    /// Whether the frame is a control frame, which belongs to no message.
    pub const fn is_control(self) -> bool {
        match self {
            Self::Close | Self::Ping | Self::Pong => true,
            Self::Continuation | Self::Text | Self::Binary => false,
        }
    }

    const fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0x0,
            Self::Text => 0x1,
            Self::Binary => 0x2,
            Self::Close => 0x8,
            Self::Ping => 0x9,
            Self::Pong => 0xA,
        }
    }

    const fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0x0 => Self::Continuation,
            0x1 => Self::Text,
            0x2 => Self::Binary,
            0x8 => Self::Close,
            0x9 => Self::Ping,
            0xA => Self::Pong,
            _ => return None,
        })
    }
}

impl Header {
    /// Decodes the header at the start of the bytes and returns its length; `Ok(None)` if more
    /// bytes are needed.
    ///
    /// # Errors
    /// Reserved bits or an opcode that no extension defined, a length that is not in its shortest
    /// form, or a control frame that is fragmented or too long.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, FrameError> {
        let [first, second, rest @ ..] = bytes else {
            return Ok(None);
        };
        // Section 5.2: without an extension the three bits are 0 and other opcodes are errors.
        if first & RESERVED != 0 {
            return Err(FrameError::Malformed("reserved bits are set"));
        }
        let opcode =
            Opcode::from_bits(first & 0x0F).ok_or(FrameError::Malformed("unknown opcode"))?;
        let fin = first & FIN != 0;
        let short = second & !MASKED;
        // Section 5.5.
        if opcode.is_control() && (!fin || short >= LENGTH_16) {
            return Err(FrameError::Malformed(
                "control frame fragmented or too long",
            ));
        }
        let Some((payload_bytes, rest)) = length(short, rest)? else {
            return Ok(None);
        };
        let (mask, rest) = if second & MASKED == 0 {
            (None, rest)
        } else if let Some((mask, rest)) = rest.split_first_chunk() {
            (Some(*mask), rest)
        } else {
            return Ok(None);
        };
        let header = Self {
            fin,
            opcode,
            mask,
            payload_bytes,
        };
        Ok(Some((header, bytes.len() - rest.len())))
    }

    /// Appends the header.
    #[inline]
    pub fn encode(self, out: &mut Vec<u8>) {
        let fin = if self.fin { FIN } else { 0 };
        let masked = if self.mask.is_some() { MASKED } else { 0 };
        out.push(fin | self.opcode.bits());
        match (
            u8::try_from(self.payload_bytes),
            u16::try_from(self.payload_bytes),
        ) {
            (Ok(short), _) if short < LENGTH_16 => out.push(masked | short),
            (_, Ok(medium)) => {
                out.push(masked | LENGTH_16);
                out.extend_from_slice(&medium.to_be_bytes());
            }
            (_, Err(_)) => {
                out.push(masked | LENGTH_64);
                out.extend_from_slice(&self.payload_bytes.to_be_bytes());
            }
        }
        out.extend_from_slice(self.mask.as_ref().map_or(&[], |mask| mask.as_slice()));
    }
}

/// The payload length after its first seven bits; `None` if it is incomplete.
fn length(short: u8, rest: &[u8]) -> Result<Option<(u64, &[u8])>, FrameError> {
    let (length, rest, shortest) = match short {
        LENGTH_16 => {
            let Some((bytes, rest)) = rest.split_first_chunk() else {
                return Ok(None);
            };
            let length = u16::from_be_bytes(*bytes);
            (u64::from(length), rest, length >= u16::from(LENGTH_16))
        }
        LENGTH_64 => {
            let Some((bytes, rest)) = rest.split_first_chunk() else {
                return Ok(None);
            };
            let length = u64::from_be_bytes(*bytes);
            (length, rest, length > u64::from(u16::MAX))
        }
        length => (u64::from(length), rest, true),
    };
    // Section 5.2: the minimal number of bytes, and the most significant bit is 0.
    if !shortest || length >> 63 != 0 {
        return Err(FrameError::Malformed("length not in its shortest form"));
    }
    Ok(Some((length, rest)))
}

/// Appends a frame that is a complete message or a control frame; a client passes a masking key.
///
/// The payload of a control frame has at most [`CONTROL_BYTES_MAX`] bytes.
#[inline]
pub fn encode_frame(opcode: Opcode, mask: Option<[u8; 4]>, payload: &[u8], out: &mut Vec<u8>) {
    debug_assert!(!opcode.is_control() || payload.len() <= CONTROL_BYTES_MAX);
    let header = Header {
        fin: true,
        opcode,
        mask,
        payload_bytes: payload.len() as u64,
    };
    out.reserve(HEADER_BYTES_MAX + payload.len());
    header.encode(out);
    let start = out.len();
    out.extend_from_slice(payload);
    if let (Some(mask), Some(masked)) = (mask, out.get_mut(start..)) {
        apply_mask(mask, 0, masked);
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    #[track_caller]
    fn refused(bytes: &[u8], expected: &str) {
        let error = Header::decode(bytes).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.close_code(), 1002);
    }

    #[test]
    fn headers_of_every_length_are_read_back() {
        let lengths = [0, 1, 125, 126, 127, 65_535, 65_536, u64::MAX >> 1];
        let masks = [None, Some([1, 2, 3, 4])];
        for (payload_bytes, mask) in lengths
            .into_iter()
            .flat_map(|length| masks.map(|mask| (length, mask)))
        {
            let header = Header {
                fin: mask.is_some(),
                opcode: Opcode::Binary,
                mask,
                payload_bytes,
            };
            let mut bytes = Vec::new();
            header.encode(&mut bytes);
            let len = bytes.len();
            assert!(len <= HEADER_BYTES_MAX);
            for cut in 0..len {
                assert_eq!(Header::decode(&bytes[..cut]), Ok(None));
            }
            bytes.push(0xFF);
            assert_eq!(Header::decode(&bytes), Ok(Some((header, len))));
        }
    }

    /// RFC 6455 section 5.7.
    #[test]
    fn the_examples_of_the_rfc_are_written() {
        let write = |opcode, mask, payload: &[u8]| {
            let mut out = Vec::new();
            encode_frame(opcode, mask, payload, &mut out);
            out
        };
        assert_eq!(
            write(Opcode::Text, None, b"Hello"),
            [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]
        );
        let key = Some([0x37, 0xfa, 0x21, 0x3d]);
        assert_eq!(
            write(Opcode::Text, key, b"Hello"),
            [
                0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58
            ]
        );
        assert_eq!(
            write(Opcode::Ping, None, b"Hello"),
            [0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]
        );
        assert_eq!(
            write(Opcode::Pong, key, b"Hello"),
            [
                0x8a, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58
            ]
        );
        assert_eq!(
            write(Opcode::Binary, None, &[0; 256])[..4],
            [0x82, 0x7E, 0x01, 0x00]
        );
        assert_eq!(
            write(Opcode::Binary, None, &vec![0; 65_536])[..10],
            [0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0]
        );
    }

    #[test]
    fn headers_against_the_grammar_are_refused() {
        for reserved in [0xC2, 0xA2, 0x92] {
            refused(&[reserved, 0], "reserved bits");
        }
        for opcode in (3..8).chain(0xB..=0xF) {
            refused(&[0x80 | opcode, 0], "unknown opcode");
        }
        refused(&[0x09, 0], "control frame");
        refused(&[0x88, 126], "control frame");
        refused(&[0x82, 126, 0, 125], "length");
        refused(&[0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], "length");
        refused(&[0x82, 127, 0x80, 0, 0, 0, 0, 1, 0, 0], "length");
    }
}
