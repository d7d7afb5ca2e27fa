//! One process of this machine, watched through a run.

use thrum_report::result::{Resources, Usage};

use super::sample::{Moment, Sample};
use super::tree::ProcessTree;
use super::usage::{UsageBuilder, Work};

/// Watches one process and its children through a run.
#[derive(Debug)]
pub struct Monitor {
    tree: ProcessTree,
    usage: UsageBuilder,
    latest: Option<Sample>,
}

impl Monitor {
    /// Starts to watch a process before it has any connection; none if it cannot be read.
    pub fn new(pid: u32) -> Option<Self> {
        Self::start(ProcessTree::new(pid))
    }

    /// This process, without what it has started.
    pub fn own() -> Option<Self> {
        Self::start(ProcessTree::alone(std::process::id()))
    }

    /// Likewise the process that listens on a port; if it ends, continues with the next one that
    /// listens there.
    pub fn follow(port: u16) -> Option<Self> {
        Self::start(ProcessTree::listening_on(port)?)
    }

    /// Process that is watched; after a restart the present one.
    pub const fn pid(&self) -> u32 {
        self.tree.root()
    }

    /// All connections are up and the load has not begun.
    pub fn mark_connected(&mut self) {
        self.read(Moment::Connected);
    }

    /// The load is about to start: until here the process was idle.
    pub fn mark_idle_end(&mut self) {
        self.read(Moment::IdleEnd);
    }

    /// The hold begins.
    pub fn begin_hold(&mut self) {
        self.read(Moment::HoldStart);
    }

    /// A second of any stage has passed: returns the use since the previous call; none if the
    /// process is gone or less than a tenth of a second has passed.
    pub fn sample(&mut self) -> Option<Resources> {
        self.read(Moment::Second)
    }

    /// The hold is over.
    pub fn end_hold(&mut self) {
        self.read(Moment::HoldEnd);
    }

    /// The latest accounts, for a progress line.
    pub const fn latest(&self) -> Option<&Sample> {
        self.latest.as_ref()
    }

    /// The run is over: the sum of it all; none without a sample at both ends of the hold. Messages
    /// are those of the hold.
    pub fn usage(
        &mut self,
        messages_received: u64,
        messages_in_and_out: u64,
        connections: u64,
    ) -> Option<Usage> {
        self.read(Moment::End);
        self.usage.usage(Work {
            messages_received,
            messages_in_and_out,
            connections,
        })
    }

    fn start(tree: ProcessTree) -> Option<Self> {
        let mut monitor = Self {
            tree,
            usage: UsageBuilder::new(),
            latest: None,
        };
        monitor.read(Moment::Start);
        monitor.latest.is_some().then_some(monitor)
    }

    fn read(&mut self, moment: Moment) -> Option<Resources> {
        let reading = self.tree.read(moment);
        self.latest = reading.sample.or(self.latest);
        self.usage.enter(&reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    /// Works until the clock of this thread has advanced by this much.
    fn work(ms: u64) {
        let until_ns = clock::thread_cpu_ns() + ms * 1_000_000;
        while clock::thread_cpu_ns() < until_ns {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_run_of_this_process_is_summed_up() {
        let mut monitor = Monitor::new(std::process::id()).unwrap();
        assert_eq!(monitor.pid(), std::process::id());
        assert_eq!(monitor.usage(1, 1, 1), None);
        monitor.mark_connected();
        monitor.mark_idle_end();
        monitor.begin_hold();
        work(150);
        let used = monitor.sample().unwrap();
        assert!(used.cores_user + used.cores_system > 0.0);
        monitor.end_hold();
        let usage = monitor.usage(100, 200, 10).unwrap();
        // The kernel books what runs at its ticks only.
        let cpu_seconds = usage.cpu_user_seconds + usage.cpu_system_seconds;
        assert!(cpu_seconds > 0.1, "{cpu_seconds}");
        assert!(usage.cpu_us_per_message.unwrap() > 1_000.0);
        assert!(usage.machine.idle < 1.0);
        assert!(usage.threads_max >= 1 && usage.open_files_max >= 3);
        assert!(usage.memory_end.pss_bytes > 0);
        assert_eq!(usage.cores_idle, None);
    }

    #[test]
    fn a_process_that_is_not_there_cannot_be_watched() {
        assert!(Monitor::new(u32::MAX).is_none());
    }
}
