//! The other end of a connection, as the edge knows it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The other end of a connection, in 20 bytes, as every connection has one. A `SocketAddr` takes 32
/// bytes, for a flow label and a scope that have no use here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// An address; behind a trusted proxy, the one that the proxy named.
    Address {
        /// IP address.
        ip: IpAddr,
        /// Port of the client.
        port: u16,
    },
    /// A process of this machine, over a Unix socket.
    Local,
    /// A client whose address a trusted proxy did not name; holds the proxy's address, `None` over
    /// a Unix socket.
    BehindProxy(Option<IpAddr>),
}

impl Peer {
    /// The address of the client itself; `None` over a Unix socket, and behind a proxy that did not
    /// name it.
    pub fn own_address(self) -> Option<IpAddr> {
        match self {
            Self::Address { .. } => self.address(),
            Self::Local | Self::BehindProxy(_) => None,
        }
    }

    /// The address by which logins are counted; `None` over a Unix socket. All clients that no
    /// proxy has named share an address that no client has.
    pub fn login_address(self) -> Option<IpAddr> {
        match self {
            Self::BehindProxy(_) => Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            Self::Address { .. } | Self::Local => self.address(),
        }
    }

    /// The nearest known address of the client; `None` over a Unix socket.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Self::Address { ip, .. } => Some(ip.to_canonical()),
            Self::Local => None,
            Self::BehindProxy(address) => address,
        }
    }

    /// Whether the client is known to be on this machine.
    pub fn is_loopback(self) -> bool {
        match self {
            Self::Address { .. } => self.address().is_some_and(|address| address.is_loopback()),
            Self::Local => true,
            Self::BehindProxy(_) => false,
        }
    }

    /// A client of this proxy, which did not name the client's address.
    #[must_use]
    pub fn unnamed_client(self) -> Self {
        Self::BehindProxy(self.address())
    }
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self::Address {
            ip: address.ip(),
            port: address.port(),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { ip, port } => SocketAddr::new(*ip, *port).fmt(formatter),
            Self::Local => formatter.write_str("unix socket"),
            Self::BehindProxy(Some(address)) => {
                write!(formatter, "unnamed client of the proxy {address}")
            }
            Self::BehindProxy(None) => formatter.write_str("unnamed client of a proxy"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_seen_through_mapped_addresses() {
        for (text, expected) in [
            ("127.0.0.1:1", true),
            ("127.9.9.9:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("192.0.2.1:1", false),
            ("[2001:db8::1]:1", false),
        ] {
            let peer = Peer::from(text.parse::<SocketAddr>().unwrap());
            assert_eq!(peer.is_loopback(), expected, "{text}");
            assert_eq!(peer.to_string(), text);
        }
        assert!(Peer::Local.is_loopback());
    }

    #[test]
    fn who_is_behind_a_proxy_of_this_machine_is_not_known_to_be_on_it() {
        let proxy = Peer::from("127.0.0.1:1".parse::<SocketAddr>().unwrap());
        assert!(!proxy.unnamed_client().is_loopback());
        assert_eq!(proxy.unnamed_client().address(), proxy.address());
        assert!(!Peer::Local.unnamed_client().is_loopback());
        for behind in [proxy.unnamed_client(), Peer::Local.unnamed_client()] {
            assert_eq!(behind.own_address(), None);
            let counted_by = behind.login_address().unwrap();
            assert!(!counted_by.is_loopback() && Some(counted_by) != proxy.address());
        }
        assert_eq!(size_of::<Peer>(), 20);
    }
}
