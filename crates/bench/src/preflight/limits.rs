//! Files that the clients need, and a broker that answers.

use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thrum_figures::count;
use thrum_transport::Endpoint;

use super::sources::SourceError;
use crate::kernel_text;
use crate::swarm::QuicSetup;

/// Files that are open beside the connections: event queues, timers, `/proc`, standard streams.
const OTHER_FILES: u64 = 64;

/// How long the broker may take to accept one connection.
const REACH_TIMEOUT: Duration = Duration::from_secs(3);

/// Why the run cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PreflightError {
    /// More clients than this process may open files.
    #[error(
        "{} clients need {} open files, but the limit is {}: raise it with `ulimit -Hn {needed}` as root (systemd: LimitNOFILE=), or use at most {} clients",
        count(u64::from(*clients)),
        count(*needed),
        count(*limit),
        count(most_clients(*clients, *needed, *limit)),
    )]
    OpenFiles {
        /// Requested clients.
        clients: u32,
        /// Files needed.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// More clients than the broker may open files.
    #[error("the broker (pid {pid}) may open only {} files, fewer than {} clients need: start it with a higher limit (`ulimit -n`; systemd: LimitNOFILE=)", count(*limit), count(u64::from(*clients)))]
    BrokerOpenFiles {
        /// The broker.
        pid: u32,
        /// Its limit.
        limit: u64,
        /// Requested clients.
        clients: u32,
    },
    /// Too few source addresses, or some that this machine does not have.
    #[error(transparent)]
    Sources(#[from] SourceError),
    /// No broker accepts connections there.
    #[error("cannot reach {target}: {cause}")]
    Unreachable {
        /// As typed.
        target: String,
        /// The kernel's error.
        cause: String,
    },
}

/// Most clients that one process of this machine can have: its hard limit of open files, less those
/// for other purposes.
pub fn clients_max() -> u32 {
    let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    u32::try_from(limit.saturating_sub(OTHER_FILES)).unwrap_or(u32::MAX)
}

/// Raises the soft limit of open files to the hard one and checks that the clients fit.
///
/// # Errors
/// They do not.
pub fn raise_open_files(clients: u32) -> Result<(), PreflightError> {
    raise_open_files_to(clients, u64::from(clients))
}

/// Likewise for clients that need this many files in all.
pub(super) fn raise_open_files_to(clients: u32, files: u64) -> Result<(), PreflightError> {
    let needed = files + OTHER_FILES;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let soft = current.unwrap_or(u64::MAX);
    if soft >= needed {
        grow_table(needed);
        return Ok(());
    }
    let limit = maximum.unwrap_or(u64::MAX);
    let raised = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
    let limit = if raised.is_ok() { limit } else { soft };
    if limit < needed {
        return Err(PreflightError::OpenFiles {
            clients,
            needed,
            limit,
        });
    }
    grow_table(needed);
    Ok(())
}

/// Enlarges the process's table of open files at once: the kernel doubles it as files are opened,
/// and each time blocks the thread that opens one for tens of milliseconds, which would count as
/// the broker's time. Costs eight bytes of the kernel's memory a file; if it fails, the table grows
/// as usual.
fn grow_table(files: u64) {
    let highest = i32::try_from(files - 1).unwrap_or(i32::MAX);
    if let Ok(any) = File::open("/dev/null") {
        fcntl_dupfd_cloexec(any, highest).ok();
    }
}

/// Checks that a broker on this machine may open a file per client.
///
/// # Errors
/// It may not.
pub fn check_broker_files(pid: u32, clients: u32) -> Result<(), PreflightError> {
    let limits = kernel_text::read(format!("/proc/{pid}/limits")).unwrap_or_default();
    match open_files_limit(&limits) {
        Some(limit) if limit < u64::from(clients) => Err(PreflightError::BrokerOpenFiles {
            pid,
            limit,
            clients,
        }),
        _ => Ok(()),
    }
}

/// Opens and closes one connection.
///
/// # Errors
/// No broker accepts it.
pub fn reach(target: &Endpoint, address: SocketAddr) -> Result<(), PreflightError> {
    let unreachable = |cause: String| PreflightError::Unreachable {
        target: target.to_string(),
        cause,
    };
    match TcpStream::connect_timeout(&address, REACH_TIMEOUT) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => Err(unreachable(
            "connection refused; is the broker running and listening there?".to_owned(),
        )),
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => Err(unreachable(format!(
            "no answer within {} s",
            REACH_TIMEOUT.as_secs()
        ))),
        Err(error) => Err(unreachable(error.to_string())),
    }
}

/// Makes and ends one connection over QUIC, so that a wrong certificate or port is reported once
/// and before the run.
///
/// # Errors
/// No broker answers, or its certificate does not match.
pub(crate) fn reach_quic(
    target: &Endpoint,
    address: SocketAddr,
    quic: &QuicSetup,
) -> Result<(), PreflightError> {
    let probed = quic.dialer.probe(address, &quic.server_name, REACH_TIMEOUT);
    probed.map_err(|error| PreflightError::Unreachable {
        target: target.to_string(),
        cause: error.to_string(),
    })
}

/// Clients that fit into the limit of files.
fn most_clients(clients: u32, needed: u64, limit: u64) -> u64 {
    let fit = u128::from(limit.saturating_sub(OTHER_FILES)) * u128::from(clients);
    let files = u128::from(needed.saturating_sub(OTHER_FILES).max(1));
    u64::try_from(fit / files).unwrap_or(u64::MAX)
}

/// The soft limit in `/proc/PID/limits`; none if it is unlimited or not there.
fn open_files_limit(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_another_process_is_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max open files            20000                20000                files     \n";
        assert_eq!(open_files_limit(limits), Some(20_000));
        assert_eq!(
            open_files_limit("Max open files unlimited unlimited files"),
            None
        );
    }

    #[test]
    fn too_few_open_files_are_reported_with_numbers_and_remedy() {
        let error = PreflightError::OpenFiles {
            clients: 100_000,
            needed: 100_064,
            limit: 20_000,
        };
        assert_eq!(
            error.to_string(),
            "100 000 clients need 100 064 open files, but the limit is 20 000: raise it with \
             `ulimit -Hn 100064` as root (systemd: LimitNOFILE=), or use at most 19 936 clients"
        );
    }

    #[test]
    fn clients_that_need_several_files_each_fit_less_often() {
        assert_eq!(most_clients(100, 100 + OTHER_FILES, 50 + OTHER_FILES), 50);
        assert_eq!(most_clients(100, 300 + OTHER_FILES, 150 + OTHER_FILES), 50);
        assert_eq!(most_clients(100, 300, 10), 0);
    }

    #[test]
    fn a_target_without_a_listener_is_unreachable() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let target = Endpoint::parse(&address.to_string()).unwrap();
        assert_eq!(reach(&target, address), Ok(()));
        drop(listener);
        assert!(matches!(
            reach(&target, address),
            Err(PreflightError::Unreachable { .. })
        ));
    }
}
