//! The formats of `/proc`, as pure functions of text.

use super::machine::MachineSample;

/// `/proc/PID/stat` of a process, the sum of its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    /// It ended and its parent has not noticed, or is about to vanish.
    pub(super) is_dead: bool,
    pub(super) parent: u32,
    pub(super) user_ticks: u64,
    pub(super) system_ticks: u64,
    /// Of its children that ended and that it has waited for, with the same of theirs: user mode
    /// and kernel.
    pub(super) children_ticks: [u64; 2],
    pub(super) threads: u64,
    /// Start time since boot, which differs from that of a later process with the same number.
    pub(super) start_ticks: u64,
}

/// `/proc/PID/task/TID/schedstat` of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SchedStat {
    pub(super) run_ns: u64,
    pub(super) wait_ns: u64,
    /// How often it got a core.
    pub(super) turns: u64,
}

/// Bytes in and out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) in_bytes: u64,
    pub(super) out_bytes: u64,
}

/// Reads `/proc/PID/stat`; the name in brackets may contain anything.
pub(super) fn stat(text: &str) -> Option<Stat> {
    let (_, after_name) = text.rsplit_once(')')?;
    // Field 3 of the format is the first here.
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Stat {
        is_dead: matches!(*fields.first()?, "Z" | "X"),
        parent: u32::try_from(field(4)?).ok()?,
        user_ticks: field(14)?,
        system_ticks: field(15)?,
        children_ticks: [field(16), field(17)].map(Option::unwrap_or_default),
        threads: field(20)?,
        start_ticks: field(22)?,
    })
}

/// Reads `/proc/…/schedstat`.
pub(super) fn schedstat(text: &str) -> Option<SchedStat> {
    let mut fields = text.split_ascii_whitespace();
    let run_ns = fields.next()?.parse().ok()?;
    let wait_ns = fields.next()?.parse().ok()?;
    let turns = fields.next()?.parse().ok()?;
    Some(SchedStat {
        run_ns,
        wait_ns,
        turns,
    })
}

/// Waiting time in `/proc/…/schedstat`, in nanoseconds. It allocates nothing.
pub(crate) fn schedstat_wait_ns(text: &[u8]) -> Option<u64> {
    schedstat(std::str::from_utf8(text).ok()?).map(|stat| stat.wait_ns)
}

/// The resident pages in `/proc/PID/statm`.
pub(super) fn resident_pages(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Disk traffic in `/proc/PID/io`, without reads that the page cache answered.
pub(super) fn disk(text: &str) -> Traffic {
    Traffic {
        in_bytes: number_of(text, "read_bytes").unwrap_or(0),
        out_bytes: number_of(text, "write_bytes").unwrap_or(0),
    }
}

/// Traffic of all interfaces in `/proc/PID/net/dev`.
pub(super) fn network(text: &str) -> Traffic {
    // NAME: 8 numbers of reception, the first is bytes, 8 of transmission likewise.
    const TRANSMITTED: usize = 8;
    let mut sum = Traffic::default();
    for (_, numbers) in text.lines().filter_map(|line| line.split_once(':')) {
        let mut numbers = numbers
            .split_ascii_whitespace()
            .map(|number| number.parse().unwrap_or(0));
        sum.in_bytes += numbers.next().unwrap_or(0);
        sum.out_bytes += numbers.nth(TRANSMITTED - 1).unwrap_or(0);
    }
    sum
}

/// Ticks of the machine's cores in `/proc/stat`.
pub(super) fn machine(text: &str) -> Option<MachineSample> {
    // user nice system idle iowait irq softirq steal; guests are counted in user already.
    const IDLE: [usize; 2] = [3, 4];
    const STOLEN: usize = 7;
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let mut machine = MachineSample::default();
    for (index, number) in line.split_ascii_whitespace().take(STOLEN + 1).enumerate() {
        let ticks: u64 = number.parse().ok()?;
        machine.all_ticks += ticks;
        if IDLE.contains(&index) {
            machine.idle_ticks += ticks;
        }
        if index == STOLEN {
            machine.stolen_ticks = ticks;
        }
    }
    (machine.all_ticks > 0).then_some(machine)
}

/// The number of a line `KEY: NUMBER [kB]`, as in `status` and `smaps_rollup`.
pub(super) fn number_of(text: &str, key: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The kernel's own memory in `/proc/meminfo`: objects, stacks and page tables. Neither the page
/// cache nor the memory of programs is in it.
pub(super) fn kernel_bytes(text: &str) -> u64 {
    const PARTS: [&str; 3] = ["Slab", "KernelStack", "PageTables"];
    let parts = PARTS.iter().filter_map(|part| number_of(text, part));
    parts.sum::<u64>() * 1024
}

/// State of a TCP socket that listens, in the tables of the kernel.
pub(super) const LISTENS: &str = "0A";

/// State of a UDP socket that takes packets from any peer.
pub(super) const UNCONNECTED: &str = "07";

/// The socket numbers in this state on a port, in `/proc/net/tcp`, `tcp6`, `udp` or `udp6`.
pub(super) fn listening_sockets(text: &str, port: u16, wanted: &str) -> Vec<u64> {
    let mut sockets = Vec::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (Some(local), Some(&state), Some(socket)) =
            (fields.get(1), fields.get(3), fields.get(9))
        else {
            continue;
        };
        let local_port = local
            .rsplit_once(':')
            .and_then(|(_, hex)| u16::from_str_radix(hex, 16).ok());
        if state == wanted && local_port == Some(port) {
            sockets.extend(socket.parse::<u64>());
        }
    }
    sockets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_whatever_the_name_is() {
        let text = "42 (a) b (c) S 7 42 42 0 -1 4194560 100 0 0 0 123 456 78 9 20 0 3 0 1000 1 2 3";
        let expected = Stat {
            is_dead: false,
            parent: 7,
            user_ticks: 123,
            system_ticks: 456,
            children_ticks: [78, 9],
            threads: 3,
            start_ticks: 1000,
        };
        assert_eq!(stat(text), Some(expected));
        let zombie = stat(&text.replace(") S 7", ") Z 7")).unwrap();
        assert!(zombie.is_dead);
        assert_eq!(stat("42 (short) S 7"), None);
    }

    #[test]
    fn schedstat_has_run_wait_and_turns() {
        let expected = SchedStat {
            run_ns: 1_181_306,
            wait_ns: 66_043,
            turns: 12,
        };
        assert_eq!(schedstat("1181306 66043 12\n"), Some(expected));
        assert_eq!(schedstat(""), None);
    }

    #[test]
    fn numbers_are_found_by_their_whole_key() {
        let text = "VmRSSX:\t1 kB\nVmRSS:\t    1234 kB\nnonvoluntary_ctxt_switches:\t9\nvoluntary_ctxt_switches:\t5\n";
        assert_eq!(number_of(text, "VmRSS"), Some(1234));
        assert_eq!(number_of(text, "voluntary_ctxt_switches"), Some(5));
        assert_eq!(number_of(text, "Pss"), None);
    }

    #[test]
    fn kernel_memory_is_that_of_its_parts() {
        let text = "MemFree: 5 kB\nSlab: 100 kB\nSReclaimable: 60 kB\nKernelStack: 8 kB\nPageTables: 4 kB\n";
        assert_eq!(kernel_bytes(text), 112 * 1024);
        assert_eq!(kernel_bytes(""), 0);
    }

    #[test]
    fn resident_pages_are_the_second_number() {
        assert_eq!(resident_pages("2741 437 377 6 0 109 0\n"), Some(437));
        assert_eq!(resident_pages("2741"), None);
    }

    #[test]
    fn disk_traffic_excludes_the_page_cache() {
        let text = "rchar: 6976\nwchar: 10\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\n\
                    write_bytes: 8192\ncancelled_write_bytes: 1\n";
        let expected = Traffic {
            in_bytes: 4096,
            out_bytes: 8192,
        };
        assert_eq!(disk(text), expected);
        assert_eq!(disk(""), Traffic::default());
    }

    #[test]
    fn network_traffic_is_that_of_all_interfaces() {
        let text = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:  139290    2195    0    0    0     0          0         0   139290    2195    0    0    0     0       0          0
  eth0:230776848    7040    0    0    0     0          0         0   446298    4486    0    0    0     0       0          0
";
        let expected = Traffic {
            in_bytes: 139_290 + 230_776_848,
            out_bytes: 139_290 + 446_298,
        };
        assert_eq!(network(text), expected);
    }

    #[test]
    fn a_core_that_waits_for_a_disk_is_idle() {
        let text =
            "cpu  35639 1 3569 188525 497 2 35 27 5 6\ncpu0 15917 0 1569 96450 105 0 6 13 0 0\n";
        let all = 35_639 + 1 + 3_569 + 188_525 + 497 + 2 + 35 + 27;
        let sample = machine(text).map(|sample| (sample.all_ticks, sample.idle_ticks));
        assert_eq!(sample, Some((all, 188_525 + 497)));
        assert_eq!(machine("cpu0 1 2 3 4 5 6 7 8\n"), None);
    }

    #[test]
    fn listening_sockets_are_found_by_port_and_state() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:075B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0
   1: 0100007F:075B 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0
   2: 0100007F:075C 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0
";
        assert_eq!(listening_sockets(text, 1883, LISTENS), [4711]);
    }
}
