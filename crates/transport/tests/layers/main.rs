//! The layers of a client against servers in memory: bytes are carried from one to the other.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod authority;
mod both_ends;
mod connector;
mod duplex;
mod pair;
mod server;
mod stacks;
mod tls;
mod websocket;
