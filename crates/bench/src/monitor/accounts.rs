//! The formats of `/proc`, as pure functions of text.

/// What `/proc/PID/stat` says of a process, all its threads together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) parent: u32,
    pub(super) user_ticks: u64,
    pub(super) system_ticks: u64,
    pub(super) threads: u64,
}

/// What `/proc/PID/task/TID/schedstat` says of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SchedStat {
    pub(super) run_ns: u64,
    pub(super) wait_ns: u64,
}

/// Reads `/proc/PID/stat`; the name in brackets may contain anything.
pub(super) fn stat(text: &str) -> Option<Stat> {
    let (_, after_name) = text.rsplit_once(')')?;
    // Field 3 of the format is the first here.
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Stat {
        parent: u32::try_from(field(4)?).ok()?,
        user_ticks: field(14)?,
        system_ticks: field(15)?,
        threads: field(20)?,
    })
}

/// Reads `/proc/…/schedstat`.
pub(super) fn schedstat(text: &str) -> Option<SchedStat> {
    let mut fields = text.split_ascii_whitespace();
    let run_ns = fields.next()?.parse().ok()?;
    let wait_ns = fields.next()?.parse().ok()?;
    Some(SchedStat { run_ns, wait_ns })
}

/// The number of a line `KEY: NUMBER [kB]`, as in `status` and `smaps_rollup`.
pub(super) fn number_of(text: &str, key: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The socket numbers that listen on a port, in `/proc/net/tcp` or `tcp6`.
pub(super) fn listening_sockets(text: &str, port: u16) -> Vec<u64> {
    const LISTEN: &str = "0A";
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
        if state == LISTEN && local_port == Some(port) {
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
        let text = "42 (a) b (c) S 7 42 42 0 -1 4194560 100 0 0 0 123 456 0 0 20 0 3 0 1000 1 2 3";
        let expected = Stat {
            parent: 7,
            user_ticks: 123,
            system_ticks: 456,
            threads: 3,
        };
        assert_eq!(stat(text), Some(expected));
        assert_eq!(stat("42 (short) S 7"), None);
    }

    #[test]
    fn schedstat_has_run_and_wait() {
        let expected = SchedStat {
            run_ns: 1_181_306,
            wait_ns: 66_043,
        };
        assert_eq!(schedstat("1181306 66043 1\n"), Some(expected));
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
    fn listening_sockets_are_found_by_port_and_state() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:075B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0
   1: 0100007F:075B 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0
   2: 0100007F:075C 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0
";
        assert_eq!(listening_sockets(text, 1883), [4711]);
    }
}
