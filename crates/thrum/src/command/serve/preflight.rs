//! Tries every address before the broker starts, so that all errors are reported at once, as text.

use std::fmt;
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};
use thrum_broker::config::{Bind, Transport};

use crate::config::{Config, DEFAULT_LISTENER};

/// Ports below this one belong to root.
const UNPRIVILEGED: u16 = 1024;

/// Addresses that cannot be listened on; never empty.
#[derive(Debug)]
pub(super) struct Refused(Vec<Refusal>);

/// An address that cannot be listened on.
#[derive(Debug)]
struct Refusal {
    address: SocketAddr,
    error: Error,
    /// Its listener.
    listener: String,
}

/// Tries all addresses. Returns those to do without: those of a family that this machine does not
/// have, if their listener has another, and those that the listener `optional` cannot have.
///
/// # Errors
/// The addresses that are busy, forbidden or not of this machine.
pub(super) fn check(config: &Config, optional: Option<&str>) -> Result<Vec<SocketAddr>, Refused> {
    let mut refused = Vec::new();
    let mut without = Vec::new();
    for (name, listener) in &config.listeners {
        let refusal = |address, error| Refusal {
            address,
            error,
            listener: name.clone(),
        };
        let mut absent = Vec::new();
        let addresses = listener.bind.iter().filter_map(|bind| match bind {
            Bind::Address(address) => Some(address),
            // The check of its file is more informative than a second socket.
            Bind::Unix(_) => None,
        });
        for address in addresses {
            match listen(*address, listener.transport) {
                Ok(()) => {}
                Err(error) if is_family_absent(*address, &error) => {
                    absent.push(refusal(*address, error));
                }
                Err(error) if optional == Some(name) => {
                    tracing::warn!(
                        %address,
                        %error,
                        "no management interface there; choose another address with listeners.{name}.bind, or [] for none"
                    );
                    without.push(*address);
                }
                Err(error) => refused.push(refusal(*address, error)),
            }
        }
        if !absent.is_empty() && absent.len() == listener.bind.len() {
            refused.append(&mut absent);
        }
        for Refusal { address, error, .. } in absent {
            tracing::info!(listener = %name, %address, %error, "not listening, no IPv6 here");
            without.push(address);
        }
    }
    if refused.is_empty() {
        Ok(without)
    } else {
        Err(Refused(refused))
    }
}

/// Listens for a moment, without sharing the port: a second broker must not start beside the first.
fn listen(address: SocketAddr, transport: Transport) -> Result<(), Error> {
    let (kind, protocol) = match transport {
        Transport::Tcp | Transport::WebSocket | Transport::Http => (Type::STREAM, Protocol::TCP),
        Transport::Quic => (Type::DGRAM, Protocol::UDP),
    };
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if transport != Transport::Quic {
        socket.set_reuse_address(true)?;
    }
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    match transport {
        Transport::Tcp | Transport::WebSocket | Transport::Http => socket.listen(1),
        Transport::Quic => Ok(()),
    }
}

/// Whether an address fails because the machine has no IPv6: the family is unknown, or has no such
/// address although every machine with IPv6 has it.
fn is_family_absent(address: SocketAddr, error: &Error) -> bool {
    let everywhere = address.ip().is_loopback() || address.ip().is_unspecified();
    let unknown = error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error());
    let absent = unknown || error.kind() == ErrorKind::AddrNotAvailable;
    address.is_ipv6() && everywhere && absent
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, refusal) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { "\nerror: " };
            write!(
                formatter,
                "{separator}cannot listen on {}: {}",
                refusal.address,
                Reason(refusal)
            )?;
        }
        Ok(())
    }
}

/// Why an address is refused and what to do.
struct Reason<'a>(&'a Refusal);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Refusal {
            address,
            error,
            listener,
        }) = self;
        let with = if listener == DEFAULT_LISTENER {
            "--listen".to_owned()
        } else {
            format!("listeners.{listener}.bind")
        };
        match error.kind() {
            ErrorKind::AddrInUse => write!(
                formatter,
                "address already in use; another broker? stop it or choose another port with {with}"
            ),
            ErrorKind::PermissionDenied if address.port() < UNPRIVILEGED => write!(
                formatter,
                "permission denied; ports below {UNPRIVILEGED} need root or CAP_NET_BIND_SERVICE, \
                 choose another port with {with}"
            ),
            ErrorKind::AddrNotAvailable => write!(
                formatter,
                "this machine has no such address; choose one of its own with {with}"
            ),
            _ => write!(formatter, "{error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_reason(address: &str, kind: ErrorKind, expected: &str) {
        let refused = |listener: &str| {
            Refused(vec![Refusal {
                address: address.parse().unwrap(),
                error: Error::from(kind),
                listener: listener.to_owned(),
            }])
        };
        assert_eq!(refused("mqtt").to_string(), expected);
        for (listener, key) in [
            ("http", "listeners.http.bind"),
            ("wss", "listeners.wss.bind"),
        ] {
            let of_listener = expected.replace("--listen", key);
            assert_eq!(refused(listener).to_string(), of_listener);
        }
    }

    #[test]
    fn a_busy_port_is_reported_with_the_remedy() {
        check_reason(
            "0.0.0.0:1883",
            ErrorKind::AddrInUse,
            "cannot listen on 0.0.0.0:1883: address already in use; another broker? stop it or choose \
             another port with --listen",
        );
    }

    #[test]
    fn a_port_of_root_is_reported_with_the_remedy() {
        check_reason(
            "127.0.0.1:83",
            ErrorKind::PermissionDenied,
            "cannot listen on 127.0.0.1:83: permission denied; ports below 1024 need root or \
             CAP_NET_BIND_SERVICE, choose another port with --listen",
        );
    }

    #[test]
    fn only_addresses_that_every_machine_has_show_that_ipv6_is_absent() {
        let absent = Error::from(ErrorKind::AddrNotAvailable);
        for (address, expected) in [
            ("[::1]:1883", true),
            ("[::]:1883", true),
            ("[fd00::1]:1883", false),
            ("127.0.0.1:1883", false),
        ] {
            assert_eq!(
                is_family_absent(address.parse().unwrap(), &absent),
                expected,
                "{address}"
            );
        }
        let busy = Error::from(ErrorKind::AddrInUse);
        assert!(!is_family_absent("[::1]:1883".parse().unwrap(), &busy));
    }
}
