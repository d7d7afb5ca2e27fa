//! Figures of this machine, from `/proc` and the limits of this process.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};

/// Time over which stolen CPU is measured.
const STEAL_TIME: Duration = Duration::from_millis(400);
/// Processes that are looked at for one that sets the clock.
const PROCESSES_MAX: usize = 100_000;
/// Programs that set the clock, as the kernel names them: at most 15 characters.
const CLOCK_PROGRAMS: [&str; 8] = [
    "chronyd",
    "ntpd",
    "systemd-timesyn",
    "openntpd",
    "ntpd-rs",
    "ptp4l",
    "phc2sys",
    "VBoxService",
];

/// Who sets the clock of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Clock {
    /// This program.
    SetBy(String),
    /// The machine around this container.
    OfHost,
    /// Nobody, as far as can be seen.
    #[default]
    Nobody,
}

/// The figures; what the system does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Machine {
    /// Clients that the configuration allows.
    pub(super) connections: u32,
    /// Files that this process may open at most.
    pub(super) open_files_hard: Option<u64>,
    /// Files of the whole machine.
    pub(super) files_max: Option<u64>,
    /// Connections that wait to be accepted.
    pub(super) somaxconn: Option<u64>,
    /// Connections whose handshake is not complete.
    pub(super) syn_backlog: Option<u64>,
    /// First and last port of outgoing connections.
    pub(super) port_range: Option<PortRange>,
    pub(super) swap_bytes_used: Option<u64>,
    pub(super) swap_bytes: Option<u64>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) memory_bytes_available: Option<u64>,
    /// 0, 1 or 2.
    pub(super) overcommit: Option<u64>,
    /// Huge pages are given without being asked for.
    pub(super) huge_pages_always: Option<bool>,
    pub(super) clock: Clock,
    /// Share of the CPU that the host gave to others.
    pub(super) steal: Option<f64>,
}

/// Ports of outgoing connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortRange {
    pub(super) first: u64,
    pub(super) last: u64,
}

/// Reads the figures; takes some hundred milliseconds.
pub(super) fn read(connections: u32) -> Machine {
    let meminfo = text("/proc/meminfo").unwrap_or_default();
    let memory = |key: &str| kilobytes(&meminfo, key).map(|kib| kib * 1024);
    let (swap, free) = (memory("SwapTotal"), memory("SwapFree"));
    let before = text("/proc/stat");
    wait(STEAL_TIME);
    let after = text("/proc/stat");
    Machine {
        connections,
        open_files_hard: Some(getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)),
        files_max: number("/proc/sys/fs/file-max"),
        somaxconn: number("/proc/sys/net/core/somaxconn"),
        syn_backlog: number("/proc/sys/net/ipv4/tcp_max_syn_backlog"),
        port_range: text("/proc/sys/net/ipv4/ip_local_port_range").and_then(|text| range(&text)),
        swap_bytes_used: swap.zip(free).map(|(swap, free)| swap.saturating_sub(free)),
        swap_bytes: swap,
        memory_bytes: memory("MemTotal"),
        memory_bytes_available: memory("MemAvailable"),
        overcommit: number("/proc/sys/vm/overcommit_memory"),
        huge_pages_always: text("/sys/kernel/mm/transparent_hugepage/enabled")
            .map(|text| text.contains("[always]")),
        clock: clock(),
        steal: before
            .zip(after)
            .and_then(|(before, after)| steal(&before, &after)),
    }
}

fn text(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn number(path: &str) -> Option<u64> {
    text(path)?.trim().parse().ok()
}

/// The value of a line as `SwapTotal:  1024 kB`.
fn kilobytes(meminfo: &str, key: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let line = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

fn range(text: &str) -> Option<PortRange> {
    let mut numbers = text.split_whitespace().map(str::parse);
    let (first, last) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(PortRange { first, last })
}

/// The share of stolen time between two readings of `/proc/stat`.
fn steal(before: &str, after: &str) -> Option<f64> {
    let times = |text: &str| -> Option<[u64; 2]> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let times: Vec<u64> = line
            .split_whitespace()
            .filter_map(|time| time.parse().ok())
            .collect();
        // The times of guests are contained in others.
        let all = times.iter().take(8).sum();
        Some([all, *times.get(7)?])
    };
    let ([all_before, before], [all_after, after]) = (times(before)?, times(after)?);
    let all = all_after.checked_sub(all_before).filter(|all| *all > 0)?;
    let stolen = after.saturating_sub(before);
    let share = |ticks: u64| f64::from(u32::try_from(ticks).unwrap_or(u32::MAX));
    Some(share(stolen) / share(all))
}

fn clock() -> Clock {
    let processes = std::fs::read_dir("/proc").into_iter().flatten();
    let names = processes.take(PROCESSES_MAX).filter_map(|entry| {
        let path = entry.ok()?.path();
        let is_process = path.file_name()?.to_str()?.parse::<u32>().is_ok();
        let name = is_process.then(|| std::fs::read_to_string(path.join("comm")).ok());
        Some(name??.trim().to_owned())
    });
    let found = names
        .into_iter()
        .find(|name| CLOCK_PROGRAMS.contains(&&**name));
    match found {
        Some(name) => Clock::SetBy(name),
        None if is_container() => Clock::OfHost,
        None => Clock::Nobody,
    }
}

/// A container has no clock of its own, and does not see the processes of its host.
fn is_container() -> bool {
    let marks = ["/.dockerenv", "/run/.containerenv"];
    let has_mark = marks.iter().any(|path| Path::new(path).exists());
    let first = text("/proc/1/comm").unwrap_or_default();
    has_mark || !matches!(first.trim(), "systemd" | "init" | "openrc-init" | "runit")
}

#[expect(
    clippy::disallowed_methods,
    reason = "a command has nothing else to do until then"
)]
fn wait(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_forms_of_the_kernel() {
        let meminfo = "MemTotal:       16 kB\nSwapTotal:       8 kB\nSwapTotalX: 9 kB\n";
        assert_eq!(kilobytes(meminfo, "SwapTotal"), Some(8));
        assert_eq!(kilobytes(meminfo, "Swap"), None);
        let ports = PortRange {
            first: 32768,
            last: 60999,
        };
        assert_eq!(range("32768\t60999\n"), Some(ports));
        let before = "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1\n";
        let after = "cpu  150 0 100 830 0 0 0 20 50 0\ncpu0 1\n";
        assert_eq!(steal(before, after), Some(0.2));
        assert_eq!(steal(before, before), None);
    }

    #[test]
    fn this_machine_can_be_read() {
        let machine = read(7);
        assert_eq!(machine.connections, 7);
        assert!(machine.open_files_hard > Some(0));
        assert!(machine.memory_bytes > Some(1 << 20), "{machine:?}");
    }
}
