//! All checks of a run with one or more brokers.

use std::net::{IpAddr, SocketAddr};

use super::limits::{PreflightError, check_broker_files, raise_open_files_to, reach};
use super::sources::source_addresses;
use thrum_transport::Endpoint;

/// Files that a connection over QUIC needs beyond the first: both ends of its pipe are in this
/// process.
const FILES_PER_PIPE: u64 = 1;

/// Files that the proxy opens for one connection.
const FILES_PER_PROXIED_CLIENT: u64 = 2;

/// Requirements of a run on this machine and the brokers.
#[derive(Clone, Debug)]
pub struct Needs<'a> {
    /// The brokers.
    pub targets: Vec<TargetNeeds<'a>>,
    /// Connections opened per second.
    pub connect_rate: u32,
    /// Source addresses that the clients are to have, all of this machine; empty leaves the choice
    /// to the check.
    pub source_addresses: Vec<IpAddr>,
}

/// Requirements on one broker.
#[derive(Clone, Debug)]
pub struct TargetNeeds<'a> {
    /// As typed.
    pub target: &'a Endpoint,
    /// Its address.
    pub address: SocketAddr,
    /// Its process, if it runs on this machine and is known.
    pub pid: Option<u32>,
    /// Clients that connect to it, those through a proxy included.
    pub clients: u32,
    /// Of these through a proxy of this process.
    pub proxied: u32,
}

impl Needs<'_> {
    /// Clients of all brokers.
    pub fn clients(&self) -> u32 {
        let clients = self.targets.iter().map(|target| target.clients);
        clients.fold(0, u32::saturating_add)
    }

    /// Files of this process for all their connections.
    fn files(&self) -> u64 {
        let more = self.targets.iter().map(|target| {
            if target.is_quic() {
                return u64::from(target.clients) * FILES_PER_PIPE;
            }
            u64::from(target.proxied.min(target.clients)) * FILES_PER_PROXIED_CLIENT
        });
        u64::from(self.clients()) + more.sum::<u64>()
    }
}

impl TargetNeeds<'_> {
    pub(super) const fn is_quic(&self) -> bool {
        self.target.scheme.is_quic()
    }

    /// Ports of this machine for the connections: over QUIC they share a few.
    fn ports(&self) -> u32 {
        if self.is_quic() {
            self.clients.min(1)
        } else {
            self.clients
        }
    }
}

/// Makes room for the clients and tries every broker over TCP; one over QUIC is tried with
/// [`reach_quic`]. Returns for each of them the source addresses that its clients take turns with;
/// empty if the kernel's choice will do.
///
/// # Errors
/// The first requirement that is not met: open files here, ports, a broker that answers, its open
/// files.
pub fn check(needs: &Needs<'_>) -> Result<Vec<Vec<IpAddr>>, PreflightError> {
    raise_open_files_to(needs.clients(), needs.files())?;
    let mut sources = Vec::with_capacity(needs.targets.len());
    for target in &needs.targets {
        sources.push(source_addresses(
            target.address.ip(),
            target.ports(),
            &needs.source_addresses,
        )?);
    }
    for target in needs.targets.iter().filter(|target| !target.is_quic()) {
        reach(target.target, target.address)?;
    }
    for target in &needs.targets {
        // A broker may hold any number of QUIC connections in one file.
        if let Some(pid) = target.pid.filter(|_| !target.is_quic()) {
            check_broker_files(pid, target.clients)?;
        }
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn target_needs(target: &Endpoint, clients: u32, proxied: u32) -> TargetNeeds<'_> {
        TargetNeeds {
            target,
            address: target.resolve().unwrap(),
            pid: None,
            clients,
            proxied,
        }
    }

    fn listen() -> (TcpListener, Endpoint) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Endpoint::parse(&listener.local_addr().unwrap().to_string()).unwrap();
        (listener, target)
    }

    #[test]
    fn over_quic_clients_share_ports_and_need_two_files_each() {
        let endpoint = Endpoint::parse("quic://127.0.0.1:1").unwrap();
        let needs = Needs {
            targets: vec![target_needs(&endpoint, 70_000, 0)],
            connect_rate: 1,
            source_addresses: Vec::new(),
        };
        assert_eq!(needs.files(), 140_000);
        let few = Needs {
            targets: vec![target_needs(&endpoint, 7, 0)],
            ..needs
        };
        // No broker listens there, and the check does not connect.
        assert_eq!(check(&few), Ok(vec![Vec::new()]));
    }

    #[test]
    fn clients_of_all_brokers_count_and_proxied_ones_three_times() {
        let (_listener, target) = listen();
        let needs = Needs {
            targets: vec![
                target_needs(&target, 100, 40),
                target_needs(&target, 50, 99),
            ],
            connect_rate: 10,
            source_addresses: Vec::new(),
        };
        assert_eq!(needs.clients(), 150);
        assert_eq!(needs.files(), 150 + 80 + 100);
    }

    #[test]
    fn every_broker_must_answer() {
        let ((_listener, first), (other, second)) = (listen(), listen());
        let needs = Needs {
            targets: vec![target_needs(&first, 1, 0), target_needs(&second, 2, 0)],
            connect_rate: 10,
            source_addresses: Vec::new(),
        };
        assert_eq!(check(&needs), Ok(vec![Vec::new(), Vec::new()]));
        drop(other);
        let Err(PreflightError::Unreachable { target, .. }) = check(&needs) else {
            panic!("the second broker is gone");
        };
        assert_eq!(target, second.to_string());
    }

    #[test]
    fn too_many_clients_in_sum_are_refused_before_anything_is_tried() {
        let (_listener, target) = listen();
        let needs = Needs {
            targets: vec![
                target_needs(&target, u32::MAX / 2, 0),
                target_needs(&target, u32::MAX, 0),
            ],
            connect_rate: 10,
            source_addresses: Vec::new(),
        };
        let error = check(&needs).unwrap_err();
        assert!(
            matches!(
                error,
                PreflightError::OpenFiles {
                    clients: u32::MAX,
                    ..
                }
            ),
            "{error}"
        );
    }
}
