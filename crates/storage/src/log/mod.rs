//! The log: segments of checked records in a ring, written at one end and reclaimed at the other.
//!
//! ```text
//!   segment = header, group*            group  = header, record*, up to 7 bytes of nothing
//!   header  = magic 8 | version 4 | check 4 | number 8 | number before 8 | its length 8
//!   group   = magic 4 | length 4 | flags 4 | check 4
//!   record  = length 4 | check 4 | payload
//! ```
//!
//! A group holds whole units, so that the end of a torn commit is cut between units.
//!
//! All numbers are little-endian, all checks CRC-32C and seeded with the segment's number (those of
//! groups also with their place), so that what a reused file held before is never taken for its
//! content. A group is what one commit writes; it says whether everything before it was safe when
//! it was written. That tells damage (quarantined, the rest is served) from the torn end of the
//! last commit (cut).
//!
//! Reclaiming takes the oldest segment, never another one: then a removal in it has nothing left to
//! be needed against, and no record needs a count of who still depends on it.

mod format;
mod gone;
mod open;
mod outside;
mod reclaim;
mod reserve;
mod ring;
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
