//! The server's end.

#[cfg(feature = "quinn")]
mod accept;
mod error;
mod host;
mod limits;
#[cfg(feature = "quinn")]
mod listener;
#[cfg(not(feature = "quinn"))]
#[path = "left_out.rs"]
mod listener;
mod metrics;
#[cfg(feature = "quinn")]
mod tls;

pub use error::ListenError;
pub use host::{Admission, Host, Peer};
pub use limits::Limits;
pub use listener::QuicListener;
pub use metrics::Metrics;
