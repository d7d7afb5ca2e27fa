//! Fuzz targets: functions over bytes that assert what must hold for any bytes.
//!
//! Invariant: a target reads nothing but its argument, so that an input fails today and tomorrow.
//! It returns what the input has shown as a number; a driver keeps inputs that show something new.

pub mod decode;
pub mod filter_match;
pub mod proxy_header;
pub mod rule_text;
pub mod session_input;
pub mod tls_records;
pub mod websocket_server;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

/// What an input has shown, as a number.
pub type Sight = u64;

/// A number for a value that stands for what an input has shown.
pub fn sight(shown: &impl Hash) -> Sight {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(shown)
}
