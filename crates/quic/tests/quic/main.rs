//! Server and client ends against each other, and against plain QUIC, on loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod bytes;
mod certificates;
mod endings;
mod fixture;
mod limits;
mod many;
mod plain;
