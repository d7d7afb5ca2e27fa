//! The codec from outside: bytes in, packets out, and back.

mod round_trip;
