//! The codec from outside: bytes in, packets out, and back.

mod lists;
mod packets;
mod refused;
mod round_trip;
mod topics;
mod unwritable;
