//! Resources of this machine: open files, and its address families.

use std::fs::File;
use std::net::SocketAddr;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::system::sysinfo;
use thrum_broker::config::Bind;

use super::preflight::{self, Refused};
use crate::config::{Loaded, Origin};

/// Files other than clients': listeners, epoll instances, the log, and connections before their
/// CONNECT.
const RESERVED: u64 = 1024 + 128;

/// Bytes of the kernel's table for each file.
const TABLE_BYTES: u64 = 8;
/// The table is made for so many files at once that it takes one part in so many of the memory: all
/// a million on a machine of 2 GiB.
const MEMORY_SHARE: u64 = 256;

/// The findings at the start; they also hold for a configuration that is loaded later.
#[derive(Debug)]
pub(super) struct Host {
    /// Files that this process may open.
    open_files: u64,
    /// Configured addresses to do without.
    absent: Vec<SocketAddr>,
}

impl Host {
    /// Raises the limit of open files, makes room for them, and tries all addresses.
    ///
    /// # Errors
    /// The addresses that cannot be listened on.
    pub(super) fn new(loaded: &Loaded) -> Result<Self, Refused> {
        let config = &loaded.config;
        let open_files = raise_open_files();
        grow_table_of_files(open_files.min(u64::from(config.limits.connections) + RESERVED));
        Ok(Self {
            open_files,
            absent: preflight::check(config, loaded.optional_listener())?,
        })
    }

    /// Fits the settings to the machine.
    pub(super) fn fit(&self, loaded: &mut Loaded) {
        for listener in loaded.config.listeners.values_mut() {
            let is_absent = |bind: &Bind| match bind {
                Bind::Address(address) => self.absent.contains(address),
                Bind::Unix(_) => false,
            };
            listener.bind.retain(|bind| !is_absent(bind));
        }
        let possible = connections_possible(self.open_files);
        if loaded.config.limits.connections <= possible {
            return;
        }
        // The default was not requested, so a lower value needs no warning.
        if *loaded.origin("limits.connections") != Origin::Default {
            tracing::warn!(
                connections = possible,
                configured = loaded.config.limits.connections,
                "the limit of open files allows fewer connections than configured; raise it with ulimit -n"
            );
        }
        // The broker then refuses a connection with a reason, before the system refuses it a file.
        loaded.config.limits.connections = possible;
    }
}

/// Raises the soft limit of open files to the hard one; returns what is in force.
fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let in_force = match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            limit.current
        }
    };
    in_force.unwrap_or(u64::MAX)
}

/// Enlarges the process's table of open files for this number, once and before the broker serves
/// clients: the kernel doubles it as files are opened, and each time blocks the worker that opens
/// one for 10 to 50 ms. Costs eight bytes of the kernel's memory for each file; if it fails, the
/// table grows as usual.
fn grow_table_of_files(files: u64) {
    let files = files.min(files_affordable());
    let Ok(highest) = i32::try_from(files.saturating_sub(1)) else {
        return;
    };
    let grown = File::open("/dev/null").and_then(|any| Ok(fcntl_dupfd_cloexec(any, highest)?));
    if let Err(error) = grown {
        tracing::debug!(%error, files, "the table of open files keeps its size");
    }
}

/// Files whose table takes a small part of this machine's memory.
fn files_affordable() -> u64 {
    let system = sysinfo();
    let memory = u64::from(system.mem_unit) * system.totalram;
    memory / MEMORY_SHARE / TABLE_BYTES
}

fn connections_possible(open_files: u64) -> u32 {
    // If files are scarce, most of them are still for clients.
    let reserved = RESERVED.min(open_files / 4);
    u32::try_from((open_files - reserved).max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_room_for_the_highest_file_before_it_is_opened() {
        let size = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
            line.unwrap().trim().parse::<u64>().unwrap()
        };
        let files = raise_open_files().min(4096);
        grow_table_of_files(files);
        assert!(size() >= files, "{} of {files}", size());
    }

    #[test]
    fn connections_are_bounded_by_open_files() {
        for (files, connections) in [(20_000, 18_848), (1024, 768), (u64::MAX, u32::MAX), (0, 1)] {
            assert_eq!(connections_possible(files), connections, "{files}");
        }
    }
}
