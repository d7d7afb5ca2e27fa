//! All checks of a run with one or more brokers.

use std::net::{IpAddr, SocketAddr};

use super::limits::{PreflightError, check_broker_files, raise_open_files_to, reach};
use super::sources::source_addresses;
use thrum_transport::Endpoint;

/// Files that the proxy opens for one connection.
const FILES_PER_PROXIED_CLIENT: u64 = 2;

/// What a run is going to ask of this machine and of the brokers.
#[derive(Clone, Debug)]
pub struct Needs<'a> {
    /// The brokers.
    pub targets: Vec<TargetNeeds<'a>>,
    /// Connections opened per second.
    pub connect_rate: u32,
    /// Source addresses that the clients are to have, all of this machine; empty leaves the choice to the check.
    pub source_addresses: Vec<IpAddr>,
}

/// What it asks of one broker.
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
        let proxied = self
            .targets
            .iter()
            .map(|target| u64::from(target.proxied.min(target.clients)) * FILES_PER_PROXIED_CLIENT);
        u64::from(self.clients()) + proxied.sum::<u64>()
    }
}

/// Makes room for the clients and tries every broker. Returns for each of them the source addresses that its clients
/// take turns with; empty if the kernel's choice will do.
///
/// # Errors
/// What cannot be met first: open files here, ports, a broker that answers, its open files.
pub fn check(needs: &Needs<'_>) -> Result<Vec<Vec<IpAddr>>, PreflightError> {
    raise_open_files_to(needs.clients(), needs.files())?;
    let mut sources = Vec::with_capacity(needs.targets.len());
    for target in &needs.targets {
        sources.push(source_addresses(
            target.address.ip(),
            target.clients,
            &needs.source_addresses,
        )?);
    }
    for target in &needs.targets {
        reach(target.target, target.address)?;
    }
    for target in &needs.targets {
        if let Some(pid) = target.pid {
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
