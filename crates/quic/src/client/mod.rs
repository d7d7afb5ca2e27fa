//! The client's end.

#[cfg(feature = "quinn")]
mod call;
#[cfg(feature = "quinn")]
mod cause;
#[cfg(feature = "quinn")]
mod dialer;
#[cfg(not(feature = "quinn"))]
#[path = "left_out.rs"]
mod dialer;
mod error;
mod options;

pub use dialer::QuicDialer;
pub use error::DialError;
pub use options::{DialOptions, Dialing};
