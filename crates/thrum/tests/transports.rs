//! `thrum pub`, `sub` and `rr` over every transport of a real broker, and their errors.
#![expect(clippy::unwrap_used, reason = "a failed setup should panic")]

#[path = "transports/authority.rs"]
mod authority;
#[path = "transports/delivered.rs"]
mod delivered;
#[path = "transports/documented.rs"]
mod documented;
#[path = "transports/fixture.rs"]
mod fixture;
#[path = "transports/forwarder.rs"]
mod forwarder;
#[path = "transports/mistaken.rs"]
mod mistaken;
#[path = "transports/refused.rs"]
mod refused;
