//! The WebSocket layer: the opening handshake of either end, then a stream of frames.

mod accept;
mod fields;
mod frames;
mod mask_keys;
mod origin;
mod request;
mod stream;
mod upgrade;

pub use accept::WebSocketOptions;
pub(crate) use accept::{ServerWebSocket, Terms};
pub(crate) use frames::Frames;
pub(crate) use stream::WebSocket;
pub(crate) use upgrade::Request;
