//! A process with its children, read from `/proc`.

use std::fs;
use std::path::{Path, PathBuf};

use super::accounts;

/// Samples between two searches for new children: a search reads the status of every process of the machine.
const SEARCH_EVERY: u32 = 5;

/// A process and all its descendants.
#[derive(Debug)]
pub struct ProcessTree {
    root: u32,
    members: Vec<u32>,
    samples_since_search: u32,
}

/// Accounts of a tree at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Monotonic clock.
    pub at_ns: u64,
    /// CPU time in user mode, in nanoseconds, to a clock tick of the kernel (10 ms).
    pub user_ns: u64,
    /// CPU time in the kernel, likewise.
    pub system_ns: u64,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// What takes longer to read.
    pub detail: Option<Detail>,
}

/// Accounts that are read thread by thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// CPU time and waiting time of each thread by its number, ascending.
    pub threads: Vec<(u32, ThreadTime)>,
    /// Context switches because a thread waited for something.
    pub voluntary_switches: u64,
    /// Context switches because another thread was to run.
    pub involuntary_switches: u64,
}

/// Exact times of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// On a core.
    pub run_ns: u64,
    /// Ready to run, waiting for a core.
    pub wait_ns: u64,
}

/// Memory of a tree at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Resident, shared pages counted in each process.
    pub rss_bytes: u64,
    /// Resident, shared pages divided among their users; 0 if the kernel does not tell.
    pub pss_bytes: u64,
}

impl ProcessTree {
    /// The tree under a process.
    pub fn new(root: u32) -> Self {
        Self {
            root,
            members: descendants(root),
            samples_since_search: 0,
        }
    }

    /// The process at the top.
    pub const fn root(&self) -> u32 {
        self.root
    }

    /// Reads the accounts; none if the process is gone.
    pub fn sample(&mut self, at_ns: u64, in_detail: bool) -> Option<Sample> {
        self.samples_since_search += 1;
        if in_detail || self.samples_since_search >= SEARCH_EVERY {
            self.members = descendants(self.root);
            self.samples_since_search = 0;
        }
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let mut sample = Sample {
            at_ns,
            ..Sample::default()
        };
        for &pid in &self.members {
            let Some(stat) = read(pid, "stat").and_then(|text| accounts::stat(&text)) else {
                continue;
            };
            sample.user_ns += stat.user_ticks * tick_ns;
            sample.system_ns += stat.system_ticks * tick_ns;
            sample.threads += stat.threads;
            sample.rss_bytes += resident_bytes(pid);
        }
        if in_detail {
            sample.detail = Some(self.detail());
        }
        (sample.threads > 0).then_some(sample)
    }

    /// Memory now; none if the process is gone. Walks the page tables, so not for every second.
    pub fn memory(&mut self) -> Option<Memory> {
        self.members = descendants(self.root);
        let mut memory = Memory::default();
        for &pid in &self.members {
            let rollup = read(pid, "smaps_rollup").unwrap_or_default();
            let rss = accounts::number_of(&rollup, "Rss").map(|kib| kib * 1024);
            memory.rss_bytes += rss.unwrap_or_else(|| resident_bytes(pid));
            memory.pss_bytes += accounts::number_of(&rollup, "Pss").map_or(0, |kib| kib * 1024);
        }
        (memory.rss_bytes > 0).then_some(memory)
    }

    fn detail(&self) -> Detail {
        let mut detail = Detail::default();
        for &pid in &self.members {
            for thread in numbered(&process_folder(pid).join("task")) {
                let folder = process_folder(pid).join("task").join(thread.to_string());
                detail
                    .threads
                    .extend(time_in(&folder).map(|time| (thread, time)));
                let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
                detail.voluntary_switches +=
                    accounts::number_of(&status, "voluntary_ctxt_switches").unwrap_or(0);
                detail.involuntary_switches +=
                    accounts::number_of(&status, "nonvoluntary_ctxt_switches").unwrap_or(0);
            }
        }
        detail.threads.sort_unstable_by_key(|(thread, _)| *thread);
        detail
    }
}

/// Times of one thread of this process.
pub fn thread_time(thread: u64) -> Option<ThreadTime> {
    time_in(&Path::new("/proc/self/task").join(thread.to_string()))
}

fn time_in(folder: &Path) -> Option<ThreadTime> {
    let text = fs::read_to_string(folder.join("schedstat")).ok()?;
    let stat = accounts::schedstat(&text)?;
    Some(ThreadTime {
        run_ns: stat.run_ns,
        wait_ns: stat.wait_ns,
    })
}

fn resident_bytes(pid: u32) -> u64 {
    let status = read(pid, "status").unwrap_or_default();
    accounts::number_of(&status, "VmRSS").map_or(0, |kib| kib * 1024)
}

/// The process and, generation by generation, its descendants.
fn descendants(root: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for pid in numbered(Path::new("/proc")) {
        let stat = read(pid, "stat").and_then(|text| accounts::stat(&text));
        parents.extend(stat.map(|stat| (pid, stat.parent)));
    }
    let mut members = vec![root];
    let mut next = 0;
    while let Some(&parent) = members.get(next) {
        next += 1;
        let children = parents
            .iter()
            .filter(|(pid, of)| *of == parent && !members.contains(pid));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        members.extend(children);
    }
    members
}

/// The entries of a folder whose names are numbers.
pub(super) fn numbered(folder: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

pub(super) fn process_folder(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

fn read(pid: u32, file: &str) -> Option<String> {
    fs::read_to_string(process_folder(pid).join(file)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_accounts() {
        let mut tree = ProcessTree::new(std::process::id());
        let sample = tree.sample(1, true).unwrap();
        assert!(sample.rss_bytes > 100_000 && sample.threads >= 1);
        let detail = sample.detail.unwrap();
        assert!(detail.threads.iter().any(|(_, time)| time.run_ns > 0));
        let memory = tree.memory().unwrap();
        assert!(memory.rss_bytes >= memory.pss_bytes);
    }

    #[test]
    fn a_process_that_is_gone_has_none() {
        assert_eq!(ProcessTree::new(u32::MAX).sample(1, true), None);
        assert_eq!(ProcessTree::new(u32::MAX).memory(), None);
    }
}
