//! Live traces: packets of clients, both ways, as they pass.
//!
//! ```text
//!   Queries::trace -> a task on each worker: flags the connections that it is about
//!   worker: flagged connection -> Traces -> bounded queue of this worker --,
//!                                                                          +-> LiveTrace (reader)
//!                                                  queue of another worker-'
//! ```
//!
//! A connection that is not traced pays for the look at a flag beside others that are read anyway.
//! A worker never waits for the reader: what does not fit into the queue, or exceeds what a worker
//! may spend on traces in a second, is left out and counted, and the reader is told. A trace ends
//! by itself after its time, or when it has as many packets or bytes as it may have.
//!
//! Passwords and authentication data are never in a trace, payloads only if they are asked for.

mod excerpt;
mod live;
mod shared;
mod taps;

use std::sync::Arc;
use std::time::Duration;

use thrum_access::Network;
use thrum_codec::Version;
use thrum_engine::peer::Peer;

pub use live::LiveTrace;
pub(crate) use shared::{SharedTrace, TraceSlots};
pub(crate) use taps::{Flagged, HEADER_BYTES_MAX, Malformed, Moment, Traces};

/// Traces of a node at a time: each costs its packets once more.
pub const TRACES_MAX: usize = 8;
/// All traces, as bits.
pub(crate) const EVERY_TRACE: u8 = u8::MAX;
/// Longest time of a trace.
pub const TRACE_TIME_MAX: Duration = Duration::from_hours(1);
/// Most packets of a trace.
pub const TRACE_PACKETS_MAX: u64 = 1_000_000;
/// Most bytes of a trace.
pub const TRACE_BYTES_MAX: u64 = 1 << 30;

/// A trace to begin.
#[derive(Clone, Debug)]
pub struct TraceRequest {
    /// What it is about.
    pub subject: TraceSubject,
    /// Payloads are wanted too, those of wills among them.
    pub payloads: bool,
    /// It ends after this time.
    pub time: Duration,
    /// It ends after so many packets.
    pub packets_max: u64,
    /// It ends after so many bytes of packets, as far as they are in the trace.
    pub bytes_max: u64,
}

/// What a trace is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceSubject {
    /// All packets of the client with this identifier, also on later connections.
    Client(Box<str>),
    /// PUBLISH packets whose topic matches this filter, from and to all clients. The topic is the
    /// one in the packet, without the mount point of the client.
    Topic(Box<str>),
    /// All packets of clients at this address, or in this network.
    Address(Network),
}

/// From whom a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the broker.
    FromClient,
    /// From the broker to the client.
    ToClient,
}

/// A packet of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedPacket {
    /// Microseconds of the Unix epoch: when it was decoded, or offered to the socket.
    pub at_micros: u64,
    /// Number of the connection, which no other connection of this trace has.
    pub connection: u64,
    /// From whom it is.
    pub direction: Direction,
    /// The other end of the connection.
    pub peer: Peer,
    /// Client identifier; empty before it is known.
    pub client_id: Arc<str>,
    /// Protocol version of the connection.
    pub version: Version,
    /// The topic of a PUBLISH that has an alias instead, if it is known.
    pub topic: Option<Box<str>>,
    /// Its bytes, cut before the payload, or after 16 KiB; passwords and authentication data are
    /// overwritten with asterisks.
    pub bytes: Box<[u8]>,
    /// Its length in bytes.
    pub packet_bytes: u32,
    /// Why it is malformed, in words; none if it is a packet. Of its bytes only the fixed header is
    /// here: a password may be anywhere behind it.
    pub malformed: Option<Box<str>>,
}

/// What a trace tells next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceItem {
    /// A packet.
    Packet(TracedPacket),
    /// So many packets are missing here.
    LeftOut(u64),
    /// Nothing follows.
    Ended(TraceEnd),
}

/// Why a trace ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEnd {
    /// Its time is over.
    Time,
    /// It has as many packets as it may have.
    Packets,
    /// It has as many bytes as it may have.
    Bytes,
    /// The broker stops.
    Stopped,
}
