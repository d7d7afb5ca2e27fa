//! The limit of open files, which bounds the number of connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thrum_broker::Config;

/// Files that are not connections: listeners, epoll instances, the log.
const RESERVED: u64 = 128;

/// Raises the soft limit of open files to the hard one; returns what is in force.
pub(super) fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let in_force = match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            limit.current
        }
    };
    in_force.unwrap_or(u64::MAX)
}

/// Lowers the limit of connections to what the limit of open files allows, so that the broker refuses a connection
/// before the system refuses it a file.
pub(super) fn bound(config: &mut Config, files: u64) {
    let possible = u32::try_from(files.saturating_sub(RESERVED).max(1)).unwrap_or(u32::MAX);
    if config.limits.connections > possible {
        tracing::info!(
            connections = possible,
            configured = config.limits.connections,
            "the limit of open files allows fewer connections than configured; raise it with ulimit -n"
        );
        config.limits.connections = possible;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_bounded_by_open_files() {
        for (files, connections) in [(1024, 896), (u64::MAX, 1_000_000), (10, 1)] {
            let mut config = Config::default();
            bound(&mut config, files);
            assert_eq!(config.limits.connections, connections, "{files}");
        }
    }
}
