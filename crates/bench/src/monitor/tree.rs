//! A process with its children, read from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use thrum_figures::SECOND_NS;
use thrum_report::result::Memory;

use super::accounts::{self, SchedStat, Traffic};
use super::costly::{OpenFiles, Walks};
use super::listener::listening_process;
use super::machine::MachineSample;
use super::sample::{Moment, Reading, Sample, ThreadTime};
use super::totals::{ProcessCounters, ProcessId, ThreadCounters, Totals};
use crate::{clock, kernel_text};

/// Samples between two searches for new children: a search reads the status of every process of the
/// machine.
const SEARCH_EVERY: u32 = 5;

/// Most processes of a tree: a broker that has a process per connection is not to stop the clock of
/// the run.
const PROCESSES_MAX: usize = 1024;

/// Most threads of a process that are read one by one, 10 µs each; the others show in its CPU ticks
/// only.
const THREADS_MAX: usize = 2048;

/// A process and all its descendants.
#[derive(Debug)]
pub struct ProcessTree {
    root: u32,
    /// Start time of the root, to distinguish it from a later process with its number.
    start_ticks: Option<u64>,
    /// Port by which a successor of the root is found.
    port: Option<u16>,
    /// Its descendants belong to it.
    with_descendants: bool,
    members: Vec<u32>,
    samples_since_search: u32,
    totals: Totals,
    walks: Walks,
    /// Between the ends of the hold, in which no page tables are walked: a process that queues
    /// messages would wait for the walk.
    is_in_hold: bool,
    open_files: OpenFiles,
    /// The last reading; one failed reading must not reset it.
    network: Traffic,
    machine: MachineSample,
}

impl ProcessTree {
    /// The tree under a process.
    pub fn new(root: u32) -> Self {
        Self {
            root,
            start_ticks: stat(root).map(|stat| stat.start_ticks),
            port: None,
            with_descendants: true,
            members: descendants(root),
            samples_since_search: 0,
            totals: Totals::new(tick_ns()),
            walks: Walks::default(),
            is_in_hold: false,
            open_files: OpenFiles::default(),
            network: Traffic::default(),
            machine: MachineSample::default(),
        }
    }

    /// A process without its descendants: the generator may have started the broker.
    pub fn alone(root: u32) -> Self {
        Self {
            with_descendants: false,
            members: vec![root],
            ..Self::new(root)
        }
    }

    /// The tree under the process that listens on a port, and after its end under its successor;
    /// none if no process listens.
    pub fn listening_on(port: u16) -> Option<Self> {
        let mut tree = Self::new(listening_process(port)?);
        tree.port = Some(port);
        Some(tree)
    }

    fn find_members(&self, root: u32) -> Vec<u32> {
        if self.with_descendants {
            descendants(root)
        } else {
            vec![root]
        }
    }

    /// The process at the top.
    pub const fn root(&self) -> u32 {
        self.root
    }

    /// Reads what belongs to a moment.
    pub fn read(&mut self, moment: Moment) -> Reading {
        match moment {
            Moment::HoldStart => self.is_in_hold = true,
            Moment::HoldEnd | Moment::End => self.is_in_hold = false,
            Moment::Start | Moment::Connected | Moment::IdleEnd | Moment::Second => {}
        }
        let memory = if moment.has_memory() {
            self.memory()
        } else {
            None
        };
        let mut sample = self.sample(clock::monotonic_ns(), moment.is_detailed());
        if let Some(sample) = &mut sample {
            let may_walk = memory.is_none() && !self.is_in_hold;
            if may_walk && self.walks.are_due(sample.at_ns, sample.rss_bytes) {
                sample.pss_bytes = self.memory().map(|memory| memory.pss_bytes);
            }
            sample.pss_bytes = sample
                .pss_bytes
                .or_else(|| memory.map(|memory| memory.pss_bytes))
                .filter(|bytes| *bytes > 0);
        }
        Reading {
            moment,
            sample,
            memory,
        }
    }

    /// Reads the accounts; none if the process is gone. The detail is the context switches by their
    /// reason.
    pub fn sample(&mut self, at_ns: u64, in_detail: bool) -> Option<Sample> {
        self.samples_since_search += 1;
        if !self.is_alive() {
            self.adopt_successor()?;
        } else if in_detail || self.samples_since_search >= SEARCH_EVERY {
            self.members = self.find_members(self.root);
            self.samples_since_search = 0;
        }
        let in_detail = in_detail || self.totals.is_empty();
        self.machine = MachineSample::read().unwrap_or(self.machine);
        let mut sample = Sample {
            at_ns,
            machine: self.machine,
            ..Sample::default()
        };
        let mut processes = BTreeMap::new();
        for &pid in &self.members {
            let Some((id, mut counters, threads)) = counters(pid, in_detail) else {
                continue;
            };
            if !self.with_descendants {
                counters.children_ns = [0; 2];
            }
            sample.threads += threads;
            sample.rss_bytes += resident_bytes(pid);
            processes.insert(id, counters);
        }
        if sample.threads == 0 {
            return None;
        }
        let sums = self.totals.enter(processes);
        self.network =
            read(self.root, "net/dev").map_or(self.network, |text| accounts::network(&text));
        Some(Sample {
            cpu_ns: sums.cpu_ns,
            user_ns: sums.user_ns,
            system_ns: sums.system_ns,
            wait_ns: sums.wait_ns,
            context_switches: sums.turns,
            voluntary_switches: sums.switches[0],
            involuntary_switches: sums.switches[1],
            open_files: self.open_files.count(&self.members, at_ns),
            disk_read_bytes: sums.disk.in_bytes,
            disk_write_bytes: sums.disk.out_bytes,
            network_in_bytes: self.network.in_bytes,
            network_out_bytes: self.network.out_bytes,
            ..sample
        })
    }

    /// Memory now; none if the process is gone. Walks the page tables, so not for every second.
    pub fn memory(&mut self) -> Option<Memory> {
        if !self.is_alive() {
            self.adopt_successor()?;
        }
        let before_ns = clock::thread_cpu_ns();
        let mut memory = Memory::default();
        for &pid in &self.members {
            let rollup = read(pid, "smaps_rollup").unwrap_or_default();
            let rss = accounts::number_of(&rollup, "Rss").map(|kib| kib * 1024);
            memory.rss_bytes += rss.unwrap_or_else(|| resident_bytes(pid));
            memory.pss_bytes += accounts::number_of(&rollup, "Pss").map_or(0, |kib| kib * 1024);
        }
        let machine = kernel_text::read("/proc/meminfo").unwrap_or_default();
        memory.kernel_bytes = accounts::kernel_bytes(&machine);
        let took_ns = clock::thread_cpu_ns().saturating_sub(before_ns);
        self.walks
            .note(clock::monotonic_ns(), memory.rss_bytes, took_ns);
        (memory.rss_bytes > 0).then_some(memory)
    }

    fn is_alive(&self) -> bool {
        stat(self.root).is_some_and(|stat| {
            !stat.is_dead
                && self
                    .start_ticks
                    .is_none_or(|ticks| ticks == stat.start_ticks)
        })
    }

    /// Follows the process that listens now, if the tree was found by its port.
    fn adopt_successor(&mut self) -> Option<()> {
        let root = listening_process(self.port?)?;
        self.root = root;
        self.start_ticks = Some(stat(root)?.start_ticks);
        self.members = self.find_members(root);
        self.samples_since_search = 0;
        Some(())
    }
}

/// Times of one thread of this process.
pub fn thread_time(thread: u64) -> Option<ThreadTime> {
    let folder = Path::new("/proc/self/task").join(thread.to_string());
    let sched = accounts::schedstat(&kernel_text::read(folder.join("schedstat"))?)?;
    Some(ThreadTime {
        run_ns: sched.run_ns,
        wait_ns: sched.wait_ns,
    })
}

/// A process's own accounts, and its number of threads; none if part of it could not be read.
fn counters(pid: u32, in_detail: bool) -> Option<(ProcessId, ProcessCounters, u64)> {
    // One that ended keeps its accounts until its parent waits for it and takes them over.
    let stat = stat(pid)?;
    let mut counters = ProcessCounters {
        parent: stat.parent,
        user_ns: stat.user_ticks * tick_ns(),
        system_ns: stat.system_ticks * tick_ns(),
        children_ns: stat.children_ticks.map(|ticks| ticks * tick_ns()),
        disk: read(pid, "io").map(|text| accounts::disk(&text)),
        threads: BTreeMap::new(),
    };
    let tasks = process_folder(pid).join("task");
    for thread in numbered(&tasks).into_iter().take(THREADS_MAX) {
        let folder = tasks.join(thread.to_string());
        let path = folder.join("schedstat");
        let sched = match kernel_text::read(&path) {
            Some(text) => accounts::schedstat(&text).unwrap_or_default(),
            // It exists, but for example no file descriptor is free.
            None if path.exists() => return None,
            // The thread has ended, or the kernel does not count: the ticks do.
            None => SchedStat::default(),
        };
        let thread_counters = ThreadCounters {
            sched,
            switches: in_detail.then(|| switches(&folder)).flatten(),
        };
        counters.threads.insert(thread, thread_counters);
    }
    let threads = if stat.is_dead { 0 } else { stat.threads };
    Some(((pid, stat.start_ticks), counters, threads))
}

/// Voluntary and involuntary context switches of a thread.
fn switches(folder: &Path) -> Option<[u64; 2]> {
    let status = kernel_text::read(folder.join("status"))?;
    let number = |key| accounts::number_of(&status, key);
    Some([
        number("voluntary_ctxt_switches")?,
        number("nonvoluntary_ctxt_switches")?,
    ])
}

fn tick_ns() -> u64 {
    SECOND_NS / rustix::param::clock_ticks_per_second().max(1)
}

fn stat(pid: u32) -> Option<accounts::Stat> {
    accounts::stat(&read(pid, "stat")?)
}

fn resident_bytes(pid: u32) -> u64 {
    let pages = read(pid, "statm").and_then(|text| accounts::resident_pages(&text));
    let page_bytes = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    pages.unwrap_or(0) * page_bytes
}

/// The process and, generation by generation, its descendants. This process is none: a broker that
/// started the generator is not charged for it.
fn descendants(root: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    let own = std::process::id();
    for pid in numbered(Path::new("/proc"))
        .into_iter()
        .filter(|pid| *pid != own)
    {
        parents.extend(stat(pid).map(|stat| (pid, stat.parent)));
    }
    let mut members = vec![root];
    let mut next = 0;
    while let Some(&parent) = members.get(next) {
        next += 1;
        let children = parents
            .iter()
            .filter(|(pid, of)| *of == parent && !members.contains(pid));
        let children: Vec<u32> = children
            .map(|(pid, _)| *pid)
            .take(PROCESSES_MAX - members.len())
            .collect();
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
    kernel_text::read(process_folder(pid).join(file))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn this_process_has_accounts() {
        let mut tree = ProcessTree::new(std::process::id());
        let sample = tree.sample(1, true).unwrap();
        assert!(sample.rss_bytes > 100_000 && sample.threads >= 1 && sample.open_files >= 3);
        assert!(sample.machine.all_ticks > 0);
        let memory = tree.memory().unwrap();
        assert!(memory.rss_bytes >= memory.pss_bytes && memory.pss_bytes > 0);
    }

    #[test]
    fn work_of_this_thread_shows_in_the_next_sample() {
        let mut tree = ProcessTree::new(std::process::id());
        let earlier = tree.sample(1, false).unwrap();
        let until_ns = clock::thread_cpu_ns() + 50_000_000;
        while clock::thread_cpu_ns() < until_ns {
            std::hint::spin_loop();
        }
        let later = tree.sample(2, true).unwrap();
        // The kernel books what runs at its ticks only.
        assert!(later.cpu_ns - earlier.cpu_ns >= 30_000_000);
        assert!(later.voluntary_switches >= earlier.voluntary_switches);
    }

    #[test]
    fn no_page_tables_are_walked_during_the_hold() {
        let mut tree = ProcessTree::alone(std::process::id());
        let walked = |reading: Reading| reading.sample.unwrap().pss_bytes.is_some();
        assert!(walked(tree.read(Moment::Start)));
        // So much more memory is worth a walk.
        let memory = vec![1_u8; 32 * 1024 * 1024];
        assert!(!walked(tree.read(Moment::HoldStart)));
        assert!(!walked(tree.read(Moment::Second)));
        assert!(walked(tree.read(Moment::HoldEnd)));
        assert_eq!(memory[memory.len() - 1], 1);
    }

    #[test]
    fn a_process_alone_has_no_descendants() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let (mut tree, mut alone) = (
            ProcessTree::new(std::process::id()),
            ProcessTree::alone(std::process::id()),
        );
        tree.sample(1, true).unwrap();
        alone.sample(1, true).unwrap();
        assert!(tree.members.contains(&child.id()));
        assert_eq!(alone.members, [std::process::id()]);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn this_process_is_no_descendant_of_the_one_that_started_it() {
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
        let parent = u32::try_from(parent).unwrap();
        let members = descendants(parent);
        assert!(members.contains(&parent) && !members.contains(&std::process::id()));
        assert_eq!(descendants(std::process::id())[0], std::process::id());
    }

    #[test]
    fn a_process_that_is_gone_has_none() {
        let mut tree = ProcessTree::new(u32::MAX);
        assert_eq!(tree.sample(1, true), None);
        assert_eq!(tree.memory(), None);
        assert_eq!(tree.read(Moment::Start).sample, None);
    }

    #[test]
    fn the_moments_that_have_memory_read_it() {
        let mut tree = ProcessTree::new(std::process::id());
        let start = tree.read(Moment::Start);
        assert_eq!(
            start.sample.unwrap().pss_bytes,
            start.memory.map(|memory| memory.pss_bytes)
        );
        assert_eq!(tree.read(Moment::HoldStart).memory, None);
    }

    #[test]
    fn a_successor_on_the_port_is_followed_and_nothing_counts_back() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut tree = ProcessTree::listening_on(port).unwrap();
        let earlier = tree.sample(1, false).unwrap();
        // As if the listener had been another process that is gone.
        tree.root = u32::MAX;
        let later = tree.sample(2, false).unwrap();
        assert_eq!(tree.root(), std::process::id());
        assert!(later.cpu_ns >= earlier.cpu_ns && later.user_ns >= earlier.user_ns);
        drop(listener);
        tree.root = u32::MAX;
        assert_eq!(tree.sample(3, false), None);
        assert!(ProcessTree::listening_on(port).is_none());
    }

    #[test]
    fn a_later_process_with_the_same_number_is_another_one() {
        let mut tree = ProcessTree::new(std::process::id());
        tree.start_ticks = tree.start_ticks.map(|ticks| ticks + 1);
        assert_eq!(tree.sample(1, false), None);
    }

    /// A shell that runs children one after the other until its input ends.
    fn burning_family(child: &str) -> std::process::Child {
        let script = format!("(while :; do {child}; done) & read line; kill $!; wait $!");
        std::process::Command::new("sh")
            .args(["-c", &script])
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap()
    }

    #[test]
    fn children_that_start_and_end_between_two_samples_count() {
        let mut family = burning_family("sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'");
        let mut tree = ProcessTree::new(family.id());
        let of = |tree: &mut ProcessTree, samples: u32| {
            let mut last = tree.sample(clock::monotonic_ns(), false).unwrap();
            let first = last;
            for _ in 0..samples {
                clock::rest(std::time::Duration::from_millis(100));
                last = tree.sample(clock::monotonic_ns(), false).unwrap();
            }
            (last.cpu_ns - first.cpu_ns, last.at_ns - first.at_ns)
        };
        let before_ns = waited_ns();
        let started_ns = clock::monotonic_ns();
        let (used_ns, span_ns) = of(&mut tree, 15);
        drop(family.stdin.take());
        family.wait().unwrap();
        let all_ns = waited_ns() - before_ns;
        let lived_ns = clock::monotonic_ns() - started_ns;
        // All that the family used, less what it used outside of the samples.
        // The last child may end when nobody waits for it any more.
        let most_ns = all_ns + 10 * tick_ns();
        assert!(used_ns <= most_ns, "{used_ns} of {all_ns} ns");
        let least_ns = all_ns.saturating_sub(lived_ns - span_ns) / 10 * 7;
        assert!(used_ns >= least_ns, "{used_ns} of {all_ns} ns");
    }

    /// CPU time of all children that this process has waited for.
    fn waited_ns() -> u64 {
        let ticks = stat(std::process::id()).unwrap().children_ticks;
        ticks.iter().sum::<u64>() * tick_ns()
    }
}
