//! The layers of a client against servers in memory: bytes are carried from one to the other.
#![expect(clippy::unwrap_used, reason = "a failed setup should panic")]

mod authority;
mod both_ends;
mod clients;
mod connector;
#[expect(
    unsafe_code,
    reason = "a global allocator cannot be had without; this one counts, for tests only"
)]
mod counting;
mod duplex;
mod listener;
mod memory;
mod pair;
mod raw_client;
mod resuming;
mod server;
mod stacks;
mod tls;
mod upgrading;
mod websocket;
