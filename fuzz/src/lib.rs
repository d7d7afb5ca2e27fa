//! Fuzz targets: functions over bytes that assert properties of any input.
//!
//! Invariant: a target depends only on its argument, so that a failure is reproducible. It returns
//! a number for the observed behaviour; a driver keeps inputs with new behaviour.

pub mod decode;
pub mod filter_match;
pub mod proxy_header;
pub mod rule_text;
pub mod session_input;
pub mod tls_records;
pub mod websocket_server;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

/// A number for the observed behaviour of an input.
pub type Sight = u64;

/// The number for a value that describes the observed behaviour.
pub fn sight(shown: &impl Hash) -> Sight {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(shown)
}
