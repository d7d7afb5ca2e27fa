//! Separates a stream of frames into payload and control frames.

use alloc::vec::Vec;

use crate::websocket::{FrameError, HEADER_BYTES_MAX, Header, Opcode, Role, apply_mask};

/// Reads the frames of one peer, in pieces of any size.
///
/// Payload is passed on as it arrives, so a long frame needs no memory. Only a header and the
/// payload of a control frame are buffered until they are complete, 125 bytes at most.
#[derive(Debug)]
pub struct FrameReader {
    role: Role,
    frame_bytes_max: u64,
    /// A message has begun and its last fragment has not arrived.
    in_message: bool,
    state: State,
    /// The incomplete header, or the incomplete payload of a control frame.
    held: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Header,
    Payload(Rest),
    Control(Header),
    /// The control frame in `held` was returned to the caller.
    HandedOut,
    Closed,
}

/// The part of a payload that has not arrived yet.
#[derive(Clone, Copy, Debug)]
struct Rest {
    mask: Option<[u8; 4]>,
    /// Number of payload bytes before it.
    position: u64,
    bytes: u64,
}

/// A complete control frame, section 5.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control<'a> {
    /// The receiver answers with a pong that has the same payload.
    Ping(&'a [u8]),
    /// The receiver does not answer.
    Pong,
    /// The receiver answers with a close frame, unless it sent one; nothing is read after it.
    Close {
        /// The close code, if the peer sent one.
        code: Option<u16>,
        /// Diagnostics for a person, often empty.
        reason: &'a str,
    },
}

impl FrameReader {
    /// Creates a reader for `role`; a frame may announce up to `frame_bytes_max` bytes.
    pub const fn new(role: Role, frame_bytes_max: u64) -> Self {
        Self {
            role,
            frame_bytes_max,
            in_message: false,
            state: State::Header,
            held: Vec::new(),
        }
    }

    /// Whether the peer has sent its close frame.
    pub const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// Reads the input up to and including the next control frame, or all of it.
    ///
    /// The payload of data frames is appended to `payload` regardless of frame boundaries. Returns
    /// `Ok(None)` if the input is used up; after a control frame the caller calls again.
    ///
    /// # Errors
    /// A frame violates the protocol; the connection is over and the reader must not be used again.
    #[inline]
    pub fn read(
        &mut self,
        input: &mut &[u8],
        payload: &mut Vec<u8>,
    ) -> Result<Option<Control<'_>>, FrameError> {
        loop {
            match self.state {
                State::Header => match self.take_header(input)? {
                    Some(header) => self.state = self.enter(header)?,
                    None => return Ok(None),
                },
                State::Payload(rest) => match rest.take(input, payload) {
                    Some(rest) => {
                        self.state = State::Payload(rest);
                        return Ok(None);
                    }
                    None => self.state = State::Header,
                },
                State::Control(header) => return self.take_control(header, input),
                State::HandedOut => {
                    self.held.clear();
                    self.state = State::Header;
                }
                State::Closed => {
                    // Section 1.4: bytes after a close frame are discarded.
                    *input = &[];
                    return Ok(None);
                }
            }
        }
    }

    fn take_header(&mut self, input: &mut &[u8]) -> Result<Option<Header>, FrameError> {
        if self.held.is_empty() {
            if let Some((header, len)) = Header::decode(input)? {
                *input = input.get(len..).unwrap_or_default();
                return Ok(Some(header));
            }
            // The input is shorter than a header, so shorter than HEADER_BYTES_MAX.
            self.held.extend_from_slice(input);
            *input = &[];
            return Ok(None);
        }
        while self.held.len() < HEADER_BYTES_MAX {
            let Some((&byte, rest)) = input.split_first() else {
                return Ok(None);
            };
            *input = rest;
            self.held.push(byte);
            if let Some((header, _)) = Header::decode(&self.held)? {
                self.held.clear();
                return Ok(Some(header));
            }
        }
        Err(FrameError::Malformed("header too long"))
    }

    /// Checks a header against the preceding frames.
    fn enter(&mut self, header: Header) -> Result<State, FrameError> {
        // Section 5.1: a client masks, a server does not.
        match (self.role, header.mask) {
            (Role::Server, None) => return Err(FrameError::Malformed("a client must mask")),
            (Role::Client, Some(_)) => {
                return Err(FrameError::Malformed("a server must not mask"));
            }
            (Role::Server, Some(_)) | (Role::Client, None) => {}
        }
        // Section 5.4: the fragments of one message are consecutive; only control frames may be
        // interleaved.
        match (header.opcode, self.in_message) {
            (Opcode::Close | Opcode::Ping | Opcode::Pong, _) => return Ok(State::Control(header)),
            // [MQTT-6.0.0-1] [MQTT3-6.0.0-1]
            (Opcode::Text, _) => return Err(FrameError::NotBinary),
            (Opcode::Continuation, false) => {
                return Err(FrameError::Malformed("continuation without a message"));
            }
            (Opcode::Binary, true) => {
                return Err(FrameError::Malformed(
                    "new message before the end of the last one",
                ));
            }
            (Opcode::Continuation, true) | (Opcode::Binary, false) => {}
        }
        if header.payload_bytes > self.frame_bytes_max {
            return Err(FrameError::TooLarge {
                bytes: header.payload_bytes,
                bytes_max: self.frame_bytes_max,
            });
        }
        self.in_message = !header.fin;
        Ok(State::Payload(Rest {
            mask: header.mask,
            position: 0,
            bytes: header.payload_bytes,
        }))
    }

    /// Buffers the payload of a control frame until it is complete.
    fn take_control(
        &mut self,
        header: Header,
        input: &mut &[u8],
    ) -> Result<Option<Control<'_>>, FrameError> {
        let wanted = usize::try_from(header.payload_bytes).unwrap_or(usize::MAX);
        let count = (wanted - self.held.len()).min(input.len());
        let (now, rest) = input.split_at_checked(count).unwrap_or_default();
        self.held.extend_from_slice(now);
        *input = rest;
        if self.held.len() < wanted {
            return Ok(None);
        }
        if let Some(mask) = header.mask {
            apply_mask(mask, 0, &mut self.held);
        }
        self.state = State::HandedOut;
        Ok(Some(match header.opcode {
            Opcode::Ping => Control::Ping(&self.held),
            Opcode::Close => {
                self.state = State::Closed;
                close(&self.held)?
            }
            Opcode::Pong | Opcode::Continuation | Opcode::Text | Opcode::Binary => Control::Pong,
        }))
    }
}

impl Rest {
    /// Moves payload from the input to the output and unmasks it; returns the rest of the payload.
    #[inline]
    fn take(self, input: &mut &[u8], payload: &mut Vec<u8>) -> Option<Self> {
        let count = usize::try_from(self.bytes).map_or(input.len(), |bytes| bytes.min(input.len()));
        let (now, rest) = input.split_at_checked(count).unwrap_or_default();
        *input = rest;
        let start = payload.len();
        payload.extend_from_slice(now);
        if let (Some(mask), Some(masked)) = (self.mask, payload.get_mut(start..)) {
            apply_mask(mask, self.position, masked);
        }
        let count = now.len() as u64;
        (count < self.bytes).then(|| Self {
            mask: self.mask,
            position: self.position + count,
            bytes: self.bytes - count,
        })
    }
}

/// Code and reason in a close frame, section 5.5.1.
fn close(payload: &[u8]) -> Result<Control<'_>, FrameError> {
    if payload.is_empty() {
        return Ok(Control::Close {
            code: None,
            reason: "",
        });
    }
    let (code, reason) = payload
        .split_first_chunk()
        .ok_or(FrameError::Malformed("incomplete close code"))?;
    let code = u16::from_be_bytes(*code);
    // Section 7.4: 1004 to 1006 and 1015 must not be sent; 1012 to 1014 were registered later.
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(FrameError::Malformed("close code that must not be sent"));
    }
    let reason = core::str::from_utf8(reason)
        .map_err(|_| FrameError::Malformed("close reason is not UTF-8"))?;
    Ok(Control::Close {
        code: Some(code),
        reason,
    })
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use alloc::{format, vec};

    use super::*;
    use crate::websocket::encode_frame;

    const KEY: Option<[u8; 4]> = Some([0x37, 0xfa, 0x21, 0x3d]);

    /// The result of reading bytes that arrive in the given pieces.
    fn read<'a>(
        role: Role,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(Vec<u8>, Vec<String>), FrameError> {
        let mut reader = FrameReader::new(role, 70_000);
        let (mut payload, mut controls) = (Vec::new(), Vec::new());
        for mut piece in pieces {
            while let Some(control) = reader.read(&mut piece, &mut payload)? {
                controls.push(format!("{control:?}"));
            }
            assert!(piece.is_empty());
        }
        Ok((payload, controls))
    }

    fn client(bytes: &[u8]) -> Result<(Vec<u8>, Vec<String>), FrameError> {
        read(Role::Client, [bytes])
    }

    #[track_caller]
    fn refused(role: Role, bytes: &[u8], expected: &str, close_code: u16) {
        let error = read(role, [bytes]).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.close_code(), close_code);
        // The result is the same if every byte arrives alone.
        assert_eq!(read(role, bytes.chunks(1)), Err(error));
    }

    fn frame(fin: bool, opcode: Opcode, mask: Option<[u8; 4]>, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode_frame(opcode, mask, payload, &mut out);
        if !fin {
            out[0] &= 0x7F;
        }
        out
    }

    /// Two messages, one of them fragmented and interleaved with control frames, then a close
    /// frame.
    fn conversation(mask: Option<[u8; 4]>) -> Vec<u8> {
        [
            frame(true, Opcode::Binary, mask, b"Hello"),
            frame(true, Opcode::Binary, mask, b""),
            frame(false, Opcode::Binary, mask, b"frag"),
            frame(true, Opcode::Ping, mask, b"still there"),
            frame(false, Opcode::Continuation, mask, b""),
            frame(true, Opcode::Pong, mask, &[7; 125]),
            frame(true, Opcode::Continuation, mask, &[b'x'; 300]),
            frame(true, Opcode::Ping, mask, b""),
            frame(true, Opcode::Close, mask, b"\x03\xE8bye"),
            b"not a frame".to_vec(),
        ]
        .concat()
    }

    #[test]
    fn control_frames_are_separated_from_the_payload_stream() {
        let (payload, controls) = client(&conversation(None)).unwrap();
        assert_eq!(payload, [b"Hellofrag".as_slice(), &[b'x'; 300]].concat());
        assert_eq!(
            controls,
            [
                format!("Ping({:?})", b"still there"),
                "Pong".to_string(),
                "Ping([])".to_string(),
                "Close { code: Some(1000), reason: \"bye\" }".to_string(),
            ]
        );
    }

    #[test]
    fn frames_are_read_alike_however_their_bytes_are_split() {
        for (role, mask) in [(Role::Client, None), (Role::Server, KEY)] {
            let bytes = conversation(mask);
            let whole = read(role, [bytes.as_slice()]).unwrap();
            assert_eq!(whole, client(&conversation(None)).unwrap());
            for position in 0..=bytes.len() {
                let (front, back) = bytes.split_at(position);
                assert_eq!(
                    read(role, [front, back]).unwrap(),
                    whole,
                    "cut at {position}"
                );
            }
            for size in 1..20 {
                assert_eq!(read(role, bytes.chunks(size)).unwrap(), whole);
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_are_read_alike_however_they_are_split(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300),
            size in 1_usize..20,
        ) {
            for role in [Role::Client, Role::Server] {
                let whole = read(role, [bytes.as_slice()]);
                assert_eq!(read(role, bytes.chunks(size)), whole);
            }
        }
    }

    /// RFC 6455 section 5.7.
    #[test]
    fn the_examples_of_the_rfc_are_read() {
        let masked_pong = [
            0x8a, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58,
        ];
        let (_, controls) = read(Role::Server, [masked_pong.as_slice()]).unwrap();
        assert_eq!(controls, ["Pong"]);
        let (_, controls) = client(&[0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]).unwrap();
        assert_eq!(controls, [format!("Ping({:?})", b"Hello")]);
        let (payload, _) =
            client(&[&[0x82, 0x7E, 0x01, 0x00], [9; 256].as_slice()].concat()).unwrap();
        assert_eq!(payload, [9; 256]);
        let head = [0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0];
        let (payload, _) = client(&[head.as_slice(), vec![9; 65_536].as_slice()].concat()).unwrap();
        assert_eq!(payload, vec![9; 65_536]);
    }

    /// The fragments of section 5.7, as bytes instead of text.
    #[test]
    fn fragments_of_the_rfc_are_joined() {
        let fragments = [0x02, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f];
        assert_eq!(client(&fragments).unwrap().0, b"Hello");
    }

    #[test]
    fn text_is_refused() {
        refused(Role::Client, &[0x81, 0x05, 0x48, 0x65], "text frame", 1003);
        refused(
            Role::Server,
            &frame(false, Opcode::Text, KEY, b"x"),
            "text frame",
            1003,
        );
    }

    #[test]
    fn a_client_masks_and_a_server_does_not() {
        let (plain, masked) = (
            frame(true, Opcode::Binary, None, b"x"),
            frame(true, Opcode::Ping, KEY, b"x"),
        );
        refused(Role::Server, &plain, "a client must mask", 1002);
        refused(Role::Client, &masked, "a server must not mask", 1002);
    }

    #[test]
    fn fragments_out_of_order_are_refused() {
        let (first, last) = (
            frame(false, Opcode::Binary, None, b"a"),
            frame(true, Opcode::Continuation, None, b"b"),
        );
        refused(Role::Client, &last, "continuation without a message", 1002);
        refused(
            Role::Client,
            &[first.clone(), last.clone(), last].concat(),
            "continuation without a message",
            1002,
        );
        refused(
            Role::Client,
            &[first.clone(), first].concat(),
            "new message before the end",
            1002,
        );
    }

    #[test]
    fn a_frame_over_the_limit_is_refused_before_its_payload() {
        let mut header = Vec::new();
        Header {
            fin: true,
            opcode: Opcode::Binary,
            mask: None,
            payload_bytes: 70_001,
        }
        .encode(&mut header);
        refused(
            Role::Client,
            &header,
            "frame of 70001 bytes, the limit is 70000",
            1009,
        );
    }

    #[test]
    fn close_frames_have_a_valid_code_and_reason_or_are_refused() {
        let close = |payload: &[u8]| frame(true, Opcode::Close, None, payload);
        let (_, controls) = client(&close(b"")).unwrap();
        assert_eq!(controls, ["Close { code: None, reason: \"\" }"]);
        for code in [1000_u16, 1003, 1007, 1014, 3000, 4999] {
            assert!(client(&close(&code.to_be_bytes())).is_ok(), "{code}");
        }
        for code in [0_u16, 999, 1004, 1006, 1015, 2999, 5000] {
            refused(
                Role::Client,
                &close(&code.to_be_bytes()),
                "close code that must not be sent",
                1002,
            );
        }
        refused(Role::Client, &close(b"\x03"), "incomplete close code", 1002);
        refused(Role::Client, &close(b"\x03\xE8\xFF"), "not UTF-8", 1002);
    }

    #[test]
    fn nothing_is_read_after_a_close_frame() {
        let mut reader = FrameReader::new(Role::Client, 100);
        let mut payload = Vec::new();
        let close = frame(true, Opcode::Close, None, b"");
        assert!(!reader.is_closed());
        assert!(
            reader
                .read(&mut close.as_slice(), &mut payload)
                .unwrap()
                .is_some()
        );
        assert!(reader.is_closed());
        let late = frame(true, Opcode::Binary, None, b"late");
        assert_eq!(reader.read(&mut late.as_slice(), &mut payload), Ok(None));
        assert_eq!(payload, b"");
    }
}
