//! The cost of processes: CPU, memory, threads, files, network and disk, from the kernel's own
//! accounts.
//!
//! The coordinator samples once per second; the generator's threads are not involved. Reading
//! ([`ProcessTree::read`]) and summing ([`UsageBuilder`]) are separate: a [`Reading`] may come from
//! another machine. [`Monitor`] does both for a process of this one.

mod accounts;
mod costly;
mod listener;
mod machine;
mod sample;
mod second;
mod stable;
mod totals;
mod tree;
mod usage;
mod watch;

pub(crate) use accounts::schedstat_wait_ns;
pub use listener::listening_process;
pub use machine::MachineSample;
pub use sample::{Moment, Reading, Sample, ThreadTime};
pub use second::resources;
pub use thrum_report::result::{Memory, Resources, Usage};
pub use tree::{ProcessTree, thread_time};
pub use usage::{UsageBuilder, Work};
pub use watch::Monitor;
