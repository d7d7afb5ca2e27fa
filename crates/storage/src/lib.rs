//! What must survive a crash: sessions, subscriptions, deliveries, wills and retained messages, in
//! a log of our own.
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
//! - **What a durable ticket means.** With [`Durability::Fsync`] the batch is on the disk: neither
//!   the end of the process nor the loss of power takes it back. With [`Durability::Os`] it is with
//!   the operating system: it survives the end of the process; the loss of power may take the last
//!   seconds, and then a last part, never something from the middle. Without durability there is no
//!   store at all.
//! - **Units.** A unit of a batch comes back whole or not at all. Units come back in the order in
//!   which they were committed: if one is there, all before it are.
//! - **Not yet durable** is not the same as gone: what was submitted may be found after a crash
//!   though its ticket never became durable.
//! - **A commit that fails** makes nothing durable, and forgets nothing: all of it is written
//!   again, to a new segment, until that succeeds. A sync that failed is never called again for the
//!   same bytes, because its second success would prove nothing. As long as it lasts,
//!   [`Health::Failing`] is shown and no ticket moves.
//! - **Space** is bounded by [`Options::disk_bytes_max`], of which three quarters can be state.
//!   When that is reached, or the disk itself has too little left for the next segment,
//!   [`Health::Full`] is shown while there is still room for changes that take away. The node has
//!   to heed it: the store refuses nothing by itself before the limit.
//! - **A message** is stored once and lives as long as a delivery or a topic refers to it. Its body
//!   has to come in the unit of a reference or before; it may come without one if the reference
//!   follows within two segments of writing.
//! - **Damage** costs what it hits. A record whose check fails is reported with its place, saved in
//!   the sub-folder `quarantine` and left out; what cannot be understood without it is left out as
//!   well and counted in [`Recovered::orphans`]. A removal that is damaged brings back what it
//!   removed. The torn end of a commit that was never finished is cut; nobody was told that it is
//!   safe.
//! - **One process** has the directory; a second one is refused. A directory of a later format is
//!   refused too.
//! - **A snapshot** ([`snapshot`], [`read_state`]) may be taken by any process at any time: it is a
//!   state that the log had at one moment while it was taken, with every unit whole or missing, and
//!   all that was durable when it began. It changes nothing and holds nobody up.
//!
//! Invariant: a ticket becomes durable only after the sync that covers its batch and all before it
//! has succeeded.
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
pub use committer::{Committer, QUEUE_BYTES_MAX, Submitter, Ticket, Wake};
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
