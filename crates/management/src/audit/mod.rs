//! The audit log: who changed what, from where, and with which outcome.
//!
//! ```text
//!   begin (on the disk) -> the change -> finish (on the disk)        record: a login, a refusal,
//!                                                                    a look at payloads
//!     files of JSON lines in DATA_DIR/audit, or a ring in memory without a data directory
//! ```
//!
//! Invariant: a change that cannot be written down first is not made; its line is on the disk
//! before it begins, so it is there also if the broker ends within it. The log is bounded, and
//! refusals, of which anybody can cause any number, cannot push changes out of it.

mod entry;
mod files;
mod flood;
mod log;
mod mask;
mod ring;
mod watches;

pub(crate) use entry::{Change, Ended, Entry, Outcome};
pub(crate) use log::{Audit, AuditError, AuditQuery};
pub(crate) use watches::{Look, Watch};
