//! Judgements on figures of the machine and of the disk; no I/O.

use std::time::Duration;

use thrum_figures::{bytes, count, fraction};

use super::deployment::Disk;
use super::finding::Finding;
use super::machine::{Clock, Machine};

/// Files other than those of clients.
const FILES_RESERVED: u64 = 1024 + 128;
/// Connections that wait to be accepted, while a worker is busy for some milliseconds.
const BACKLOG_MIN: u64 = 4096;
/// Ports of outgoing connections: sinks, backends of authentication and proxies on this machine.
const PORTS_MIN: u64 = 10_000;
/// Part of the memory that should be available.
const MEMORY_AVAILABLE_MIN: f64 = 0.1;
/// Share of stolen CPU that shows in latencies.
const STEAL_MAX: f64 = 0.05;
/// Free space below which the disk may be full before anybody looks.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// Time of a commit at which publishers with QoS 1 notice the disk.
const SYNC_SLOW: Duration = Duration::from_millis(20);

/// Judges the machine.
pub(super) fn machine(machine: &Machine) -> Vec<Finding> {
    let judged = [
        open_files(machine),
        files_max(machine),
        backlog(machine),
        syn_backlog(machine),
        ports(machine),
        memory(machine),
        swap(machine),
        overcommit(machine),
        huge_pages(machine),
        Some(clock(&machine.clock)),
        steal(machine),
    ];
    judged.into_iter().flatten().collect()
}

fn open_files(machine: &Machine) -> Option<Finding> {
    const CHECK: &str = "descriptors";
    let hard = machine.open_files_hard?;
    let needed = u64::from(machine.connections) + FILES_RESERVED;
    if hard >= needed.min(100_000) {
        let files = if hard == u64::MAX {
            "any number of".to_owned()
        } else {
            count(hard)
        };
        return Some(Finding::ok(
            CHECK,
            format!("a process may open {files} files"),
        ));
    }
    Some(Finding::warn(
        CHECK,
        format!(
            "a process may open {} files; limits.connections allows {} clients",
            count(hard),
            count(machine.connections.into())
        ),
        "each client is an open file: more clients are refused (0x97)",
        "ulimit -n 1048576 in the shell that starts the broker; LimitNOFILE=1048576 in a systemd unit; \
         docker run --ulimit nofile=1048576",
    ))
}

fn files_max(machine: &Machine) -> Option<Finding> {
    const CHECK: &str = "fs.file-max";
    let files = machine.files_max?;
    let needed = u64::from(machine.connections).min(100_000) + FILES_RESERVED;
    if files >= needed {
        return Some(Finding::ok(CHECK, "the machine may open enough files"));
    }
    Some(Finding::warn(
        CHECK,
        format!("all processes together may open {} files", count(files)),
        "each client is an open file",
        "sysctl -w fs.file-max=2097152, and the same in /etc/sysctl.d/90-thrum.conf",
    ))
}

fn backlog(machine: &Machine) -> Option<Finding> {
    const CHECK: &str = "listen backlog";
    let backlog = machine.somaxconn?;
    if backlog >= BACKLOG_MIN {
        let words = format!("{} connections may wait to be accepted", count(backlog));
        return Some(Finding::ok(CHECK, words));
    }
    Some(Finding::warn(
        CHECK,
        format!("net.core.somaxconn is {}", count(backlog)),
        "when many clients connect at once, as after a power cut, connections are dropped and tried again after seconds",
        format!(
            "sysctl -w net.core.somaxconn={BACKLOG_MIN}, and the same in /etc/sysctl.d/90-thrum.conf"
        ),
    ))
}

fn syn_backlog(machine: &Machine) -> Option<Finding> {
    const CHECK: &str = "SYN backlog";
    let backlog = machine.syn_backlog?;
    if backlog >= BACKLOG_MIN / 4 {
        return Some(Finding::ok(
            CHECK,
            format!("{} handshakes of TCP may be under way", count(backlog)),
        ));
    }
    Some(Finding::warn(
        CHECK,
        format!("net.ipv4.tcp_max_syn_backlog is {}", count(backlog)),
        "when many clients connect at once, some have to try again after seconds",
        "sysctl -w net.ipv4.tcp_max_syn_backlog=4096, and the same in /etc/sysctl.d/90-thrum.conf",
    ))
}

fn ports(machine: &Machine) -> Option<Finding> {
    const CHECK: &str = "ports";
    let range = machine.port_range?;
    let ports = (range.last + 1).saturating_sub(range.first);
    let words = format!(
        "{} ports for outgoing connections ({} to {})",
        count(ports),
        range.first,
        range.last
    );
    if ports >= PORTS_MIN {
        return Some(Finding::ok(CHECK, words));
    }
    Some(Finding::warn(
        CHECK,
        words,
        "a proxy on this machine has no more connections to the broker than that, nor has a bench to one address",
        "sysctl -w net.ipv4.ip_local_port_range='1024 65535', and the same in /etc/sysctl.d/90-thrum.conf",
    ))
}

fn memory(machine: &Machine) -> Option<Finding> {
    const CHECK: &str = "memory";
    let (all, available) = (machine.memory_bytes?, machine.memory_bytes_available?);
    let words = format!(
        "{} of {} are available",
        bytes(fraction(available)),
        bytes(fraction(all))
    );
    if fraction(available) >= fraction(all) * MEMORY_AVAILABLE_MIN {
        return Some(Finding::ok(CHECK, words));
    }
    Some(Finding::warn(
        CHECK,
        words,
        "the kernel kills the largest process when memory ends, and that is often the broker",
        "give the machine more memory or fewer programs; limits.memory bounds the broker",
    ))
}

fn swap(machine: &Machine) -> Option<Finding> {
    const CHECK: &str = "swap";
    let (all, used) = (machine.swap_bytes?, machine.swap_bytes_used?);
    if used == 0 {
        let words = if all == 0 {
            "there is none"
        } else {
            "none is in use"
        };
        return Some(Finding::ok(CHECK, words));
    }
    Some(Finding::warn(
        CHECK,
        format!("{} are in use", bytes(fraction(used))),
        "a session whose memory is on the disk answers only after the disk did",
        "sysctl -w vm.swappiness=1; MemorySwapMax=0 in a systemd unit keeps the broker out of it",
    ))
}

fn overcommit(machine: &Machine) -> Option<Finding> {
    const CHECK: &str = "overcommit";
    if machine.overcommit? != 2 {
        return Some(Finding::ok(CHECK, "memory is given when it is used"));
    }
    Some(Finding::warn(
        CHECK,
        "vm.overcommit_memory is 2",
        "memory that is reserved counts as used: the broker may end for lack of memory although there is some",
        "sysctl -w vm.overcommit_memory=0, and the same in /etc/sysctl.d/90-thrum.conf",
    ))
}

fn huge_pages(machine: &Machine) -> Option<Finding> {
    const CHECK: &str = "huge pages";
    if !machine.huge_pages_always? {
        return Some(Finding::ok(
            CHECK,
            "are given only where they are asked for",
        ));
    }
    Some(Finding::warn(
        CHECK,
        "transparent huge pages are given always",
        "many small sessions may take several times their memory, and compaction may delay a worker by milliseconds",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; transparent_hugepage=madvise on the kernel's command \
         line makes it stay",
    ))
}

fn clock(clock: &Clock) -> Finding {
    const CHECK: &str = "clock";
    match clock {
        Clock::SetBy(program) => Finding::ok(CHECK, format!("{program} sets it")),
        Clock::OfHost => Finding::ok(CHECK, "is that of the host of this container"),
        Clock::Nobody => Finding::warn(
            CHECK,
            "nothing is seen that sets it",
            "expiry of messages, certificates and logs go by the wall clock",
            "apt-get install chrony (or dnf, apk add); timedatectl set-ntp true with systemd",
        ),
    }
}

fn steal(machine: &Machine) -> Option<Finding> {
    const CHECK: &str = "CPU steal";
    let share = machine.steal?;
    let words = format!(
        "{:.1} % of the CPU went to others of the host",
        share * 100.0
    );
    if share <= STEAL_MAX {
        return Some(Finding::ok(CHECK, words));
    }
    Some(Finding::warn(
        CHECK,
        words,
        "messages wait while the host runs something else",
        "take a machine with dedicated cores, or move its neighbours",
    ))
}

/// Judges the disk of the data directory.
pub(super) fn disk(disk: &Disk) -> Vec<Finding> {
    let judged = [kind(disk), space(disk), sync(disk)];
    judged.into_iter().flatten().collect()
}

fn kind(disk: &Disk) -> Option<Finding> {
    const CHECK: &str = "file system";
    let kind = disk.kind.as_deref()?;
    let words = format!("{} is on {kind}", disk.path);
    Some(match kind {
        "nfs" | "cifs" | "smb2" | "fuse" => Finding::warn(
            CHECK,
            words,
            "a network file system may lose what it has promised to keep, and its locks may fail",
            "put node.data_dir on a local disk",
        ),
        "tmpfs" | "ramfs" => Finding::fail(
            CHECK,
            words,
            "it is memory: sessions and messages are lost with the machine",
            "put node.data_dir on a disk",
        ),
        "overlayfs" => Finding::fail(
            CHECK,
            words,
            "it is the layer of a container: sessions and messages are lost with it",
            "docker run -v thrum:/var/lib/thrum, or a PersistentVolume in Kubernetes",
        ),
        _ => Finding::ok(CHECK, words),
    })
}

fn space(disk: &Disk) -> Option<Finding> {
    const CHECK: &str = "disk space";
    let free = disk.free_bytes?;
    let words = format!("{} are free in {}", bytes(fraction(free)), disk.path);
    if free >= FREE_BYTES_MIN {
        return Some(Finding::ok(CHECK, words));
    }
    Some(Finding::warn(
        CHECK,
        words,
        "on a full disk the broker refuses messages that it would have to keep (0x97)",
        "free space, or move node.data_dir; storage.disk_bytes_max bounds what the broker takes",
    ))
}

fn sync(disk: &Disk) -> Option<Finding> {
    const CHECK: &str = "disk sync";
    let sync = disk.sync.as_ref()?;
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    let words = format!(
        "{:.1} ms until 4 KiB are on the disk, {:.1} ms at most in {} tries",
        millis(sync.median),
        millis(sync.longest),
        sync.tries
    );
    if sync.median <= SYNC_SLOW {
        return Some(Finding::ok(CHECK, words));
    }
    Some(Finding::warn(
        CHECK,
        words,
        "each message with QoS 1 or 2 for a session that is kept waits so long for its acknowledgement",
        "use an SSD, or storage.durability = \"os\" if the last second may be lost in a power cut",
    ))
}

#[cfg(test)]
mod tests {
    use super::super::deployment::SyncTimes;
    use super::super::finding::Level;
    use super::super::machine::PortRange;
    use super::*;

    fn healthy() -> Machine {
        Machine {
            connections: 1_000_000,
            open_files_hard: Some(1_048_576),
            files_max: Some(2_097_152),
            somaxconn: Some(4096),
            syn_backlog: Some(4096),
            port_range: Some(PortRange {
                first: 32_768,
                last: 60_999,
            }),
            swap_bytes_used: Some(0),
            swap_bytes: Some(0),
            memory_bytes: Some(8 << 30),
            memory_bytes_available: Some(4 << 30),
            overcommit: Some(0),
            huge_pages_always: Some(false),
            clock: Clock::SetBy("chronyd".to_owned()),
            steal: Some(0.0),
        }
    }

    /// The checks that found something to look at.
    fn bad(findings: &[Finding]) -> Vec<&'static str> {
        let bad = findings.iter().filter(|one| one.level != Level::Ok);
        bad.map(|one| {
            assert!(!one.why.is_empty() && !one.cure.is_empty(), "{one:?}");
            one.check
        })
        .collect()
    }

    #[test]
    fn a_healthy_machine_is_fine_in_every_respect() {
        let findings = machine(&healthy());
        assert_eq!(findings.len(), 11);
        assert_eq!(bad(&findings), [""; 0]);
    }

    #[test]
    fn what_the_system_does_not_tell_is_not_judged() {
        let unknown = Machine {
            clock: Clock::OfHost,
            ..Machine::default()
        };
        assert_eq!(machine(&unknown).len(), 1);
    }

    #[test]
    fn each_figure_is_found_alone() {
        let check = |change: fn(&mut Machine), expected: &str| {
            let mut figures = healthy();
            change(&mut figures);
            assert_eq!(bad(&machine(&figures)), [expected]);
        };
        check(|it| it.open_files_hard = Some(1024), "descriptors");
        check(|it| it.files_max = Some(10_000), "fs.file-max");
        check(|it| it.somaxconn = Some(128), "listen backlog");
        check(|it| it.syn_backlog = Some(128), "SYN backlog");
        check(
            |it| {
                it.port_range = Some(PortRange {
                    first: 60_000,
                    last: 60_999,
                });
            },
            "ports",
        );
        check(|it| it.memory_bytes_available = Some(1 << 20), "memory");
        check(|it| it.swap_bytes_used = Some(1 << 20), "swap");
        check(|it| it.overcommit = Some(2), "overcommit");
        check(|it| it.huge_pages_always = Some(true), "huge pages");
        check(|it| it.clock = Clock::Nobody, "clock");
        check(|it| it.steal = Some(0.2), "CPU steal");
    }

    #[test]
    fn few_files_are_enough_for_few_clients() {
        let mut small = healthy();
        small.connections = 100;
        small.open_files_hard = Some(4096);
        assert_eq!(bad(&machine(&small)), [""; 0]);
    }

    #[test]
    fn a_disk_is_judged_by_kind_space_and_time() {
        let good = || Disk {
            path: "/var/lib/thrum".to_owned(),
            kind: Some("ext4".to_owned()),
            free_bytes: Some(10 << 30),
            sync: Some(SyncTimes {
                median: Duration::from_millis(2),
                longest: Duration::from_millis(30),
                tries: 20,
            }),
        };
        assert_eq!(bad(&disk(&good())), [""; 0]);
        for (kind, level) in [
            ("nfs", Level::Warn),
            ("tmpfs", Level::Fail),
            ("overlayfs", Level::Fail),
        ] {
            let mut one = good();
            one.kind = Some(kind.to_owned());
            assert_eq!(disk(&one)[0].level, level, "{kind}");
        }
        let mut full = good();
        full.free_bytes = Some(1 << 20);
        assert_eq!(bad(&disk(&full)), ["disk space"]);
        let mut slow = good();
        slow.sync = slow.sync.map(|sync| SyncTimes {
            median: Duration::from_millis(80),
            ..sync
        });
        assert_eq!(bad(&disk(&slow)), ["disk sync"]);
        assert_eq!(disk(&Disk::default()), []);
    }
}
