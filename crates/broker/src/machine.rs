//! What the system tells about the machine, and about the time that the workers had on its CPUs.

use std::fs;

use rustix::param::clock_ticks_per_second;

/// Beginning of the names of the threads of workers.
pub(crate) const WORKER_THREAD: &str = "worker-";
/// Threads of this process that are looked at: more than it has with the most workers.
const THREADS_MAX: usize = 4096;

/// The machine at one moment; counts and times are since its start, or that of the process. A
/// figure that the system does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFigures {
    /// The time of all its CPUs together.
    pub cpu: Option<CpuTimes>,
    /// Segments of TCP of this network namespace.
    pub segments: Option<Segments>,
    /// The workers, in no order.
    pub workers: Vec<ThreadTimes>,
}

/// Times of CPUs in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// They ran something.
    pub busy: u64,
    /// They had nothing to do, also while they waited for a disk.
    pub idle: u64,
    /// The hypervisor gave them to others while they had something to do.
    pub stolen: u64,
    /// How many there are.
    pub count: u64,
}

/// Segments of TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// Sent, without those that were sent again.
    pub sent: u64,
    /// Sent again.
    pub retransmitted: u64,
}

/// Times of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Its thread identifier.
    pub thread: u64,
    /// On a CPU.
    pub running_ns: u64,
    /// Ready to run, while others had the CPUs.
    pub ready_ns: u64,
    /// How often it got a CPU.
    pub runs: u64,
}

/// Reads the figures: two files of `/proc`, and two for each thread.
pub fn machine_figures() -> MachineFigures {
    let read = |file: &str| fs::read_to_string(file).ok();
    MachineFigures {
        cpu: read("/proc/stat").as_deref().and_then(cpu_times),
        segments: read("/proc/self/net/snmp").as_deref().and_then(segments),
        workers: workers(),
    }
}

/// The times of all CPUs, from `/proc/stat`, which counts ticks.
fn cpu_times(stat: &str) -> Option<CpuTimes> {
    let mut fields = stat.lines().next()?.split_ascii_whitespace();
    if fields.next()? != "cpu" {
        return None;
    }
    let mut millis = || {
        let ticks: u64 = fields.next()?.parse().ok()?;
        Some(ticks * 1000 / clock_ticks_per_second().max(1))
    };
    let [user, nice, system] = [millis()?, millis()?, millis()?];
    let [idle, waits_for_disk] = [millis()?, millis()?];
    let [interrupts, soft_interrupts] = [millis()?, millis()?];
    Some(CpuTimes {
        busy: user + nice + system + interrupts + soft_interrupts,
        idle: idle + waits_for_disk,
        stolen: millis().unwrap_or(0),
        count: stat.lines().filter(|line| is_of_one_cpu(line)).count() as u64,
    })
}

/// Whether a line of `/proc/stat` is about one CPU: `cpu0 …`.
fn is_of_one_cpu(line: &str) -> bool {
    let rest = line.strip_prefix("cpu");
    rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// The segments of TCP, from `/proc/net/snmp`: a line of names and a line of values.
fn segments(snmp: &str) -> Option<Segments> {
    let mut lines = snmp.lines().filter(|line| line.starts_with("Tcp:"));
    let names = lines.next()?.split_ascii_whitespace();
    let values: Vec<&str> = lines.next()?.split_ascii_whitespace().collect();
    let (mut sent, mut retransmitted) = (None, None);
    for (name, value) in names.zip(values) {
        match name {
            "OutSegs" => sent = value.parse().ok(),
            "RetransSegs" => retransmitted = value.parse().ok(),
            _ => {}
        }
    }
    Some(Segments {
        sent: sent?,
        retransmitted: retransmitted?,
    })
}

/// The times of the threads of workers.
fn workers() -> Vec<ThreadTimes> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let threads = tasks.flatten().take(THREADS_MAX);
    threads
        .filter_map(|task| {
            let name = fs::read_to_string(task.path().join("comm")).ok()?;
            if !name.starts_with(WORKER_THREAD) {
                return None;
            }
            let thread = task.file_name().to_str()?.parse().ok()?;
            let times = fs::read_to_string(task.path().join("schedstat")).ok()?;
            thread_times(thread, &times)
        })
        .collect()
}

/// The times of a thread, from its `schedstat`.
fn thread_times(thread: u64, schedstat: &str) -> Option<ThreadTimes> {
    let mut fields = schedstat.split_ascii_whitespace();
    let mut number = || fields.next()?.parse().ok();
    Some(ThreadTimes {
        thread,
        running_ns: number()?,
        ready_ns: number()?,
        runs: number()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_idle_and_stolen_time_are_told_apart() {
        let stat = "cpu  100 2 30 400 50 6 7 80 9 1\ncpu0 1 2 3\ncpu1 4 5 6\nintr 7\n";
        let ticks = clock_ticks_per_second().max(1);
        let millis = |count: u64| count * 1000 / ticks;
        let times = CpuTimes {
            busy: millis(100) + millis(2) + millis(30) + millis(6) + millis(7),
            idle: millis(400) + millis(50),
            stolen: millis(80),
            count: 2,
        };
        assert_eq!(cpu_times(stat), Some(times));
        assert_eq!(cpu_times("intr 1 2"), None);
        assert_eq!(cpu_times("cpu 1 2"), None);
    }

    #[test]
    fn segments_are_found_by_their_names() {
        let snmp = "Ip: A B\nIp: 1 2\nTcp: InSegs OutSegs RetransSegs InErrs\nTcp: 7 90 3 0\nUdp: X\nUdp: 1\n";
        let found = Segments {
            sent: 90,
            retransmitted: 3,
        };
        assert_eq!(segments(snmp), Some(found));
        assert_eq!(segments("Tcp: InSegs\nTcp: 7\n"), None);
    }

    #[test]
    fn a_thread_has_run_and_waited_for_a_cpu() {
        let times = ThreadTimes {
            thread: 7,
            running_ns: 1500,
            ready_ns: 20,
            runs: 3,
        };
        assert_eq!(thread_times(7, "1500 20 3\n"), Some(times));
        assert_eq!(thread_times(7, "1500 20"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_tells_the_time_of_its_cpus() {
        let cpu = machine_figures().cpu.unwrap();
        assert!(cpu.busy > 0 && cpu.idle > 0, "{cpu:?}");
    }
}
