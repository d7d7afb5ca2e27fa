//! Live traces in the forms in which they leave the broker: JSON lines, and pcapng for Wireshark.

mod excerpt;
mod lines;
mod pcapng;

pub(crate) use lines::line;
pub use lines::{Line, PacketLine, TracedAck, TracedBody, TracedFilter, TracedSubAck, TracedWill};
pub(crate) use pcapng::Pcapng;
