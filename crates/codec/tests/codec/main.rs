//! Black-box tests of the codec: decoding, encoding and round trips.

mod lists;
mod packets;
mod refused;
mod round_trip;
mod topics;
mod unwritable;
mod versions;
