//! Durable storage of sessions, subscriptions, deliveries, wills and retained messages in a log.
//!
//! ```text
//!   workers -> Batch -> Submitter -> Committer (one thread) -> Store -> Log -> Disk
//!                          ^ ticket is durable, or the health has changed: Wake
//!   start:  Disk -> Log -> Replay -> Recovered (for the node) and Index (for the store)
//!   backup: ReadDisk -> snapshot -> SnapshotTarget, or Contents -> Recovered
//! ```
//!
//! # The contract
//!
//! - **A durable ticket.** With [`Durability::Fsync`] the batch is on the disk: it survives the end
//!   of the process and a power failure. With [`Durability::Os`] the operating system has it: it
//!   survives the end of the process. A power failure may lose the last seconds, but only the last
//!   part, never something from the middle. Without durability there is no store.
//! - **Units.** A unit of a batch is recovered completely or not at all. Units are recovered in the
//!   order of their commits: if one is recovered, all earlier ones are.
//! - **Not yet durable** does not mean lost: a submitted batch may be recovered after a crash
//!   although its ticket never became durable.
//! - **A commit that fails** makes nothing durable, and discards nothing: all of it is written
//!   again, to a new segment, until that succeeds. A failed sync is never repeated for the same
//!   bytes, because a later success would prove nothing. Meanwhile the health is
//!   [`Health::Failing`] and no ticket becomes durable.
//! - **Space** is limited by [`Options::disk_bytes_max`], of which three quarters can be state.
//!   When that limit is reached, or the disk has too little space for the next segment, the health
//!   is [`Health::Full`] while there is still room for changes that remove state. The node has to
//!   react: the store itself refuses nothing before the limit.
//! - **A message** is stored once and exists as long as a delivery or a topic refers to it. Its
//!   body has to be written in the unit of a reference or earlier. It may be written without a
//!   reference if one follows within two segments.
//! - **Damage** is limited to the damaged records. A record whose checksum fails is reported with
//!   its position, saved in the subdirectory `quarantine` and omitted. Records that depend on it
//!   are omitted as well and counted in [`Recovered::orphans`]. A damaged removal restores the
//!   removed object. The torn end of an unfinished commit is cut; it was never reported as durable.
//! - **One process** uses the directory; a second one is refused. A directory of a later format is
//!   refused too.
//! - **A snapshot** ([`snapshot`], [`read_state`]) may be taken by any process at any time. It is a
//!   state that the log had at one moment while the snapshot was taken, with every unit complete or
//!   missing, and everything that was durable at the start. It changes nothing and blocks no
//!   process.
//!
//! Invariant: a ticket becomes durable only after the sync that covers its batch and all earlier
//! ones has succeeded.
#![forbid(unsafe_code)]

mod clock;
mod committer;
mod contents;
pub mod disk;
mod log;
mod metrics;
mod record;
mod state;
mod store;

#[cfg(feature = "testing")]
pub use committer::Stepper;
pub use committer::{Committer, QUEUE_BYTES_MAX, StorageMonitor, Submitter, Ticket, Wake};
pub use contents::{Contents, read_state};
pub use log::{
    Damage, Gone, LogReport, Loss, OpenError, SnapshotError, SnapshotTarget, WriteError, snapshot,
};
pub use metrics::{COMMIT_TIME_CLASSES, MetricsSnapshot};
pub use record::{
    Awaiting, Batch, Change, ClockNote, Identifiers, Inflight, LogMillis, MESSAGE_ID_MAX,
    Malformed, Message, MessageId, Owner, Queued, Retained, Seq, Session, SessionId, Subscription,
    WallMillis, Will,
};
pub use state::{
    Content, Orphans, Recovered, RecoveredDelivery, RecoveredMessage, RecoveredRetained,
    RecoveredSession, RecoveredSubscription, RecoveredWill,
};
pub use store::{Committed, Durability, Health, Options, Store, Usage};
