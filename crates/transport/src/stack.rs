//! Sending through one layer or two, for both ends.

use crate::error::LayerError;
use crate::pieces::Pieces;
use crate::tls::{Session, Side};
use crate::websocket::Frames;

/// Appends payload in its form on the wire: few frames, few records.
pub(crate) fn send<'p, S: Side>(
    tls: Option<&mut Session<S>>,
    frames: Option<&mut Frames>,
    pieces: impl Iterator<Item = &'p [u8]>,
    wire_out: &mut Vec<u8>,
) -> Result<(), LayerError> {
    let mut pieces = Pieces::new(pieces);
    match (tls, frames) {
        (Some(tls), None) => tls.send(&mut pieces, wire_out),
        (None, Some(frames)) => {
            while frames.append(&mut pieces, wire_out) {}
            Ok(())
        }
        (Some(tls), Some(frames)) => loop {
            let start = wire_out.len();
            if !frames.append(&mut pieces, wire_out) {
                return Ok(());
            }
            tls.seal(start, wire_out)?;
        },
        (None, None) => Err(LayerError::NotOpen),
    }
}

/// Appends the close frame and the close alert.
pub(crate) fn close<S: Side>(
    tls: Option<&mut Session<S>>,
    frames: Option<&mut Frames>,
    wire_out: &mut Vec<u8>,
) {
    let start = wire_out.len();
    if let Some(frames) = frames {
        frames.close(wire_out);
    }
    let Some(tls) = tls else { return };
    if wire_out.len() > start {
        // If TLS cannot write there is nothing to close, and the frame is removed again.
        let _unable = tls.seal(start, wire_out);
    }
    tls.close(wire_out);
}
