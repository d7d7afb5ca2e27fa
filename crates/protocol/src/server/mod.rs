//! The server's side of one client: handshake, inbound, outbound, will, and the session that holds them.

mod session;
pub use session::*;
