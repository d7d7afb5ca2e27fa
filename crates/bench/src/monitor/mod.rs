//! What processes cost: CPU, memory, threads and context switches, from the kernel's own accounts.
//!
//! The coordinator samples once per second; the generator's threads are not involved.

mod accounts;
mod listener;
mod tree;
mod usage;

pub use listener::listening_process;
pub use tree::{Detail, Memory, ProcessTree, Sample, ThreadTime, thread_time};
pub use usage::Usage;

use crate::clock;

/// Watches one process and its children through a run.
#[derive(Debug)]
pub struct Monitor {
    tree: ProcessTree,
    before: Memory,
    connected: Memory,
    samples: Vec<Sample>,
}

impl Monitor {
    /// Starts to watch a process before it has any connection; none if it cannot be read.
    pub fn new(pid: u32) -> Option<Self> {
        let mut tree = ProcessTree::new(pid);
        let before = tree.memory()?;
        Some(Self {
            tree,
            before,
            connected: before,
            samples: Vec::new(),
        })
    }

    /// Process that is watched.
    pub const fn pid(&self) -> u32 {
        self.tree.root()
    }

    /// All connections are up and the load has not begun.
    pub fn mark_connected(&mut self) {
        self.connected = self.tree.memory().unwrap_or(self.connected);
    }

    /// The hold begins: everything counts from here on.
    pub fn begin_hold(&mut self) {
        self.samples.clear();
        self.samples
            .extend(self.tree.sample(clock::monotonic_ns(), true));
    }

    /// A second of the hold has passed.
    pub fn sample(&mut self) {
        self.samples
            .extend(self.tree.sample(clock::monotonic_ns(), false));
    }

    /// The hold is over.
    pub fn end_hold(&mut self) {
        self.samples
            .extend(self.tree.sample(clock::monotonic_ns(), true));
    }

    /// CPU time so far in seconds and resident memory in bytes, for a progress line.
    pub fn latest(&self) -> Option<&Sample> {
        self.samples.last()
    }

    /// The sum of it all; none without a sample at both ends of the hold.
    pub fn usage(&mut self) -> Option<Usage> {
        let end = self.tree.memory().unwrap_or(self.connected);
        Usage::new(&self.samples, [self.before, self.connected, end])
    }
}
