//! `thrum pub`, `sub` and `rr` over every transport of a real broker, and what they say where one
//! does not work.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

#[path = "transports/authority.rs"]
mod authority;
#[path = "transports/delivered.rs"]
mod delivered;
#[path = "transports/documented.rs"]
mod documented;
#[path = "transports/forwarder.rs"]
mod forwarder;
#[path = "transports/mistaken.rs"]
mod mistaken;
#[path = "transports/refused.rs"]
mod refused;
#[path = "transports/room.rs"]
mod room;
