//! The machine that a result was measured on, with the settings that bear on it.

use std::collections::BTreeMap;

use rustix::process::{Resource, getrlimit};
use thrum_report::result::{AFFINITY, Machine};

use crate::{clock, kernel_text};

/// Settings that are read as they are: name, and path under `/proc/sys`.
const KERNEL_SETTINGS: [&str; 14] = [
    "fs.file-max",
    "fs.nr_open",
    "kernel.sched_autogroup_enabled",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "vm.swappiness",
];

/// Governor of the first core; they rarely differ.
pub(crate) const GOVERNOR_PATH: &str = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";

const HUGE_PAGES_PATH: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const CLOCK_SOURCE_PATH: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Describes this machine; unreadable values are empty or missing.
pub fn machine() -> Machine {
    let cpu = kernel_text::read("/proc/cpuinfo").unwrap_or_default();
    let memory = kernel_text::read("/proc/meminfo").unwrap_or_default();
    let release = kernel_text::read("/etc/os-release")
        .or_else(|| kernel_text::read("/usr/lib/os-release"))
        .unwrap_or_default();
    let open_files = getrlimit(Resource::Nofile).maximum;
    let mut settings = settings(&cpu, setting);
    settings.insert("cpu.usable_cores".to_owned(), cores().to_string());
    let all_cores = all_cores(&kernel_text::read("/proc/stat").unwrap_or_default());
    let status = kernel_text::read("/proc/self/status").unwrap_or_default();
    let affinity = affinity(&status, all_cores).map(str::to_owned);
    settings.extend(affinity.map(|cores| (AFFINITY.to_owned(), cores)));
    Machine {
        kernel: setting("/proc/sys/kernel/osrelease").unwrap_or_default(),
        os: os_name(&release).unwrap_or_default(),
        cpu: value_of(&cpu, "model name").unwrap_or_default(),
        cores: all_cores,
        memory_bytes: memory_bytes(&memory).unwrap_or(0),
        open_files_max: open_files.unwrap_or(u64::MAX),
        settings,
        clock: clock_text(
            clock::monotonic_resolution_ns(),
            setting(CLOCK_SOURCE_PATH).as_deref(),
        ),
    }
}

/// Cores of the machine, in the text of `/proc/stat`, as its idle share counts them.
fn all_cores(stat: &str) -> usize {
    let is_core = |line: &&str| {
        let number = line.strip_prefix("cpu");
        number.is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
    };
    match stat.lines().filter(is_core).count() {
        0 => cores(),
        number => number,
    }
}

/// The cores that this process is bound to, in the text of `/proc/self/status`; none if it may use
/// all of the machine's.
fn affinity(status: &str, all_cores: usize) -> Option<&str> {
    let mut lines = status.lines();
    let allowed = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let allowed = allowed.trim();
    let count = allowed.split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let ends = [first, last].map(|end| end.parse::<usize>().unwrap_or(0));
        ends[1].saturating_sub(ends[0]) + 1
    });
    (!allowed.is_empty() && count.sum::<usize>() < all_cores).then_some(allowed)
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn setting(path: &str) -> Option<String> {
    kernel_text::setting(path)
}

/// The settings that are there, by name; `read` gives the text at a path.
fn settings(cpu: &str, read: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let mut enter = |name: &str, value: Option<String>| {
        settings.extend(value.map(|value| (name.to_owned(), value)));
    };
    for name in KERNEL_SETTINGS {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        enter(name, read(&path));
    }
    enter("cpu.governor", read(GOVERNOR_PATH));
    enter("cpu.virtualization", virtualization(cpu));
    let huge_pages = read(HUGE_PAGES_PATH);
    enter(
        "vm.transparent_hugepage",
        huge_pages.as_deref().and_then(chosen),
    );
    settings
}

/// `PRETTY_NAME` of `/etc/os-release`, its quotes removed.
fn os_name(text: &str) -> Option<String> {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned())
}

/// The value of the first line `KEY : VALUE`.
fn value_of(text: &str, key: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| name.trim() == key)?;
    Some(value.trim().to_owned())
}

fn memory_bytes(text: &str) -> Option<u64> {
    let value = value_of(text, "MemTotal")?;
    let kib: u64 = value.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Whether a hypervisor shows itself; none if the processor does not list its features in a known
/// way.
fn virtualization(cpu: &str) -> Option<String> {
    let flags = value_of(cpu, "flags")?;
    let is_guest = flags.split(' ').any(|flag| flag == "hypervisor");
    Some(if is_guest { "guest" } else { "none" }.to_owned())
}

/// The word in square brackets: the kernel's choice from a list.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    let (word, _) = rest.split_once(']')?;
    Some(word.to_owned())
}

fn clock_text(resolution_ns: u64, source: Option<&str>) -> String {
    let text = format!("CLOCK_MONOTONIC, resolution {resolution_ns} ns");
    match source {
        Some(source) => format!("{text}, current clocksource {source}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: &str = "\
processor\t: 0
vendor_id\t: GenuineIntel
model\t\t: 167
model name\t: Intel(R) Xeon(R) Processor: special
flags\t\t: fpu vme hypervisor lahf_lm

processor\t: 1
model name\t: another
";

    #[test]
    fn the_processor_is_the_first_one() {
        let name = value_of(CPU, "model name").unwrap();
        assert_eq!(name, "Intel(R) Xeon(R) Processor: special");
        assert_eq!(value_of("", "model name"), None);
    }

    #[test]
    fn cores_are_those_of_the_machine_and_not_only_of_this_process() {
        let stat = "cpu  10 0 10 80\ncpu0 5 0 5 40\ncpu1 5 0 5 40\nctxt 5\ncpufreq 1\n";
        assert_eq!(all_cores(stat), 2);
        assert_eq!(all_cores(""), cores());
    }

    #[test]
    fn an_affinity_is_named_where_it_leaves_out_cores() {
        let status = |cores: &str| format!("Cpus_allowed:\t0f\nCpus_allowed_list:\t{cores}\n");
        assert_eq!(affinity(&status("0-1,6"), 8), Some("0-1,6"));
        assert_eq!(affinity(&status("0-6"), 8), Some("0-6"));
        assert_eq!(affinity(&status("0-7"), 8), None);
        // The kernel has room for more than there are.
        assert_eq!(affinity(&status("0-127"), 8), None);
        assert_eq!(affinity("", 8), None);
    }

    #[test]
    fn the_distribution_is_named_without_quotes() {
        let text = "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(os_name(text).unwrap(), "Debian GNU/Linux 12 (bookworm)");
        assert_eq!(os_name("PRETTY_NAME=Void\n").unwrap(), "Void");
        assert_eq!(os_name("NAME=x\n"), None);
    }

    #[test]
    fn memory_is_reported_in_bytes() {
        let text = "MemTotal:        8022360 kB\nMemFree:          100 kB\n";
        assert_eq!(memory_bytes(text), Some(8_022_360 * 1024));
        assert_eq!(memory_bytes("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn a_guest_has_the_flag_of_a_hypervisor() {
        assert_eq!(virtualization(CPU).unwrap(), "guest");
        let host = CPU.replace("hypervisor ", "");
        assert_eq!(virtualization(&host).unwrap(), "none");
        assert_eq!(virtualization("CPU architecture: 8\n"), None);
    }

    #[test]
    fn settings_are_those_that_the_kernel_has() {
        let read = |path: &str| {
            let value = match path {
                "/proc/sys/net/core/somaxconn" => "4096",
                "/proc/sys/net/ipv4/tcp_mem" => "1 2 3",
                "/sys/kernel/mm/transparent_hugepage/enabled" => "always [madvise] never",
                GOVERNOR_PATH => "powersave",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let settings = settings(CPU, read);
        let expected = [
            ("cpu.governor", "powersave"),
            ("cpu.virtualization", "guest"),
            ("net.core.somaxconn", "4096"),
            ("net.ipv4.tcp_mem", "1 2 3"),
            ("vm.transparent_hugepage", "madvise"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(settings, BTreeMap::from(expected));
    }

    #[test]
    fn the_clock_names_its_source() {
        assert_eq!(
            clock_text(1, Some("kvm-clock")),
            "CLOCK_MONOTONIC, resolution 1 ns, current clocksource kvm-clock"
        );
        assert_eq!(clock_text(1, None), "CLOCK_MONOTONIC, resolution 1 ns");
    }

    #[test]
    fn this_machine_is_described() {
        let machine = machine();
        assert!(!machine.kernel.is_empty() && machine.cores >= 1);
        assert!(machine.memory_bytes > 1024 * 1024 && machine.open_files_max > 0);
        assert!(machine.clock.starts_with("CLOCK_MONOTONIC"));
        assert!(machine.settings.contains_key("fs.nr_open"));
    }
}
