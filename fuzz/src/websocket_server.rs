//! Any bytes of a WebSocket client: the server's output is independent of their partition.
//!
//! The first byte of an input selects the size of the pieces and whether the opening handshake is
//! already complete; the others are the stream.

use std::sync::OnceLock;

use thrum_transport::{Acceptor, LayerError, WebSocketOptions};

use crate::{Sight, sight};

/// A valid handshake.
pub const REQUEST: &[u8] = b"GET /mqtt HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mqtt\r\nOrigin: https://app\r\n\
    Sec-WebSocket-Version: 13\r\n\r\n";

/// Small, so that inputs reach it.
const HEAD_BYTES_MAX: usize = 600;

/// Error replies are short: the longest quotes 80 characters.
const ANSWER_BYTES_MAX: usize = 600;

#[derive(Debug, PartialEq)]
struct Said {
    plain: Vec<u8>,
    wire: Vec<u8>,
    fault: Option<LayerError>,
    is_open: bool,
    is_closed_by_peer: bool,
}

/// Passes the input to a server.
///
/// # Panics
/// If its output differs for partitioned bytes, or is longer than the bytes justify.
pub fn target(input: &[u8]) -> Sight {
    let Some((&choice, stream)) = input.split_first() else {
        return 0;
    };
    let is_upgraded = choice & 0x80 != 0;
    let bytes = if is_upgraded {
        [REQUEST, stream].concat()
    } else {
        stream.to_vec()
    };
    let piece_bytes = usize::from(choice & 0x7F) + 1;
    let whole = hear(&bytes, usize::MAX);
    assert_eq!(hear(&bytes, piece_bytes), whole, "pieces of {piece_bytes}");
    assert!(whole.plain.len() <= stream.len());
    assert!(whole.wire.len() <= ANSWER_BYTES_MAX + stream.len());
    assert!(!is_upgraded || whole.wire.starts_with(b"HTTP/1.1 101 "));
    assert!(whole.plain.is_empty() || whole.wire.starts_with(b"HTTP/1.1 101 "));
    let status = whole.wire.get(9..12);
    sight(&(
        status,
        whole.fault.as_ref().map(ToString::to_string),
        whole.is_open,
        whole.is_closed_by_peer,
        whole.plain.len().min(3),
    ))
}

fn hear(bytes: &[u8], piece_bytes: usize) -> Said {
    static ACCEPTOR: OnceLock<Acceptor> = OnceLock::new();
    let acceptor = ACCEPTOR.get_or_init(|| {
        let options = WebSocketOptions {
            origins: vec!["https://app".to_owned()],
            frame_bytes_max: 100_000,
            head_bytes_max: HEAD_BYTES_MAX,
            ..WebSocketOptions::default()
        };
        Acceptor::new(None, Some(&options)).expect("the options are good")
    });
    let mut server = acceptor.layers().expect("WebSocket is a layer");
    let (mut plain, mut wire) = (Vec::new(), Vec::new());
    let mut bytes = bytes.to_vec();
    let mut pieces = bytes.chunks_mut(piece_bytes);
    let fault = pieces.find_map(|piece| server.receive(piece, &mut plain, &mut wire).err());
    Said {
        plain,
        wire,
        fault,
        is_open: server.is_open(),
        is_closed_by_peer: server.is_closed_by_peer(),
    }
}
