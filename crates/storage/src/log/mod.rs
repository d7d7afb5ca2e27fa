//! The log: segments of checksummed records in a ring, written at one end and reclaimed at the
//! other.
//!
//! ```text
//!   segment = header, group*            group  = header, record*, up to 7 bytes of padding
//!   header  = magic 8 | version 4 | check 4 | number 8 | number before 8 | its length 8
//!   group   = magic 4 | length 4 | flags 4 | check 4
//!   record  = length 4 | check 4 | payload
//! ```
//!
//! A group contains complete units, so that the end of a torn commit is cut between units.
//!
//! All numbers are little-endian. All checksums are CRC-32C, seeded with the segment's number
//! (those of groups also with their position), so that the earlier content of a reused file is
//! never taken for valid. A group is the output of one commit. It records whether everything before
//! it was durable when it was written. This distinguishes damage (quarantined, the rest is used)
//! from the torn end of the last commit (cut).
//!
//! Only the oldest segment is reclaimed: no older record exists that its removals apply to, so no
//! record needs a count of its dependents.

mod format;
mod gone;
mod open;
mod outside;
mod reclaim;
mod reserve;
mod ring;
#[cfg(test)]
mod ring_tests;
mod scan;
mod spare;
mod tolerant;

pub(crate) use gone::{End, FoundSegment};
pub use gone::{Gone, Loss};
pub use open::{Damage, LogReport, OpenError};
pub(crate) use outside::read_segment;
pub use outside::{SnapshotError, SnapshotTarget, snapshot};
pub use ring::WriteError;
pub(crate) use ring::{Log, Size};

/// Limits of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogOptions {
    pub(crate) segment_bytes: u64,
    pub(crate) disk_bytes_max: u64,
    pub(crate) sync: bool,
}
