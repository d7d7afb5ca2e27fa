//! The error about a part that the program was built without.

use std::fmt;

/// A requested part that the program was built without, by the name of its Cargo feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut(pub &'static str);

impl fmt::Display for LeftOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let feature = self.0;
        write!(
            formatter,
            "this program was built without `{feature}`: use a complete one, or build it with \
             `cargo build --release --package thrum --features {feature}`"
        )
    }
}

impl std::error::Error for LeftOut {}
