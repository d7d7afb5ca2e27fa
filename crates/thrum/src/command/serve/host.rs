//! What this machine gives: open files, and the address families it has.

use std::net::SocketAddr;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thrum_broker::config::Bind;

use super::preflight::{self, Refused};
use crate::config::{Config, Loaded, Origin};

/// Files that are not clients': listeners, epoll instances, the log, and sockets that have not said who they are.
const RESERVED: u64 = 1024 + 128;

/// What was found out at the start; it also holds for a configuration that is loaded later.
#[derive(Debug)]
pub(super) struct Host {
    /// Files that this process may open.
    open_files: u64,
    /// Configured addresses of a family that the machine does not have.
    absent: Vec<SocketAddr>,
}

impl Host {
    /// Raises the limit of open files and tries all addresses.
    ///
    /// # Errors
    /// The addresses that cannot be listened on.
    pub(super) fn new(config: &Config) -> Result<Self, Refused> {
        Ok(Self {
            open_files: raise_open_files(),
            absent: preflight::check(config)?,
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
        // Nobody asked for the default, so there it is no surprise.
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

fn connections_possible(open_files: u64) -> u32 {
    // Where files are scarce, most of them are still for clients.
    let reserved = RESERVED.min(open_files / 4);
    u32::try_from((open_files - reserved).max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_bounded_by_open_files() {
        for (files, connections) in [(20_000, 18_848), (1024, 768), (u64::MAX, u32::MAX), (0, 1)] {
            assert_eq!(connections_possible(files), connections, "{files}");
        }
    }
}
