//! The values read at one moment, in the form that is kept, summed and sent between machines.

use serde::{Deserialize, Serialize};
use thrum_report::result::Memory;

use super::machine::MachineSample;

/// Accounts of a process and its children at one moment. Counters count from the first sample of
/// their [`super::ProcessTree`] and never go back, even if processes and threads end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// Monotonic clock of its machine.
    pub at_ns: u64,
    /// CPU time, exact unless threads ended: those count to a clock tick of the kernel (10 ms).
    pub cpu_ns: u64,
    /// CPU time in user mode, to a clock tick.
    pub user_ns: u64,
    /// CPU time in the kernel, likewise.
    pub system_ns: u64,
    /// Time that threads were ready to run and had no core.
    pub wait_ns: u64,
    /// How often threads got a core.
    pub context_switches: u64,
    /// Context switches because a thread waited for something, as of the last sample in detail.
    pub voluntary_switches: u64,
    /// Context switches because another thread was to run, likewise.
    pub involuntary_switches: u64,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Resident memory with shared pages divided among their users, if it was read now.
    pub pss_bytes: Option<u64>,
    /// Threads.
    pub threads: u64,
    /// Open files.
    pub open_files: u64,
    /// Bytes read from disk; 0 if the kernel does not report it.
    pub disk_read_bytes: u64,
    /// Bytes written to disk, likewise.
    pub disk_write_bytes: u64,
    /// Bytes that the network interfaces of its machine or container received since it started.
    pub network_in_bytes: u64,
    /// Likewise sent.
    pub network_out_bytes: u64,
    /// The machine around it.
    pub machine: MachineSample,
}

/// Moments of a run at which something is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// Before the first connection.
    Start,
    /// All clients are connected and there is no load.
    Connected,
    /// The load is about to start.
    IdleEnd,
    /// The hold begins.
    HoldStart,
    /// A second of any stage has passed.
    Second,
    /// The hold is over.
    HoldEnd,
    /// The run is over.
    End,
}

impl Moment {
    /// Whether the costly counters of threads are read.
    pub(super) const fn is_detailed(self) -> bool {
        matches!(self, Self::Start | Self::HoldStart | Self::HoldEnd)
    }

    /// Whether memory is read at any cost.
    pub(super) const fn has_memory(self) -> bool {
        matches!(self, Self::Start | Self::Connected | Self::End)
    }
}

/// The values read at a moment; none of them if the process was gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// When.
    pub moment: Moment,
    /// The accounts.
    pub sample: Option<Sample>,
    /// Memory by a walk of the page tables, at the moments that have it.
    pub memory: Option<Memory>,
}

/// Exact times of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// On a core.
    pub run_ns: u64,
    /// Ready to run, waiting for a core.
    pub wait_ns: u64,
}
