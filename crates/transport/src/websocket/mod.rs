//! The WebSocket layer: the opening handshake, then a stream of frames.

mod mask_keys;
mod stream;
mod upgrade;

pub(crate) use stream::WebSocket;
pub(crate) use upgrade::Request;
