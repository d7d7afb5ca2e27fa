//! Who is at the other end of a connection.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// An address, the one a trusted proxy named if there is one.
    Address(SocketAddr),
    /// A process of this machine, over a Unix socket.
    Local,
}

impl Peer {
    /// Its address; none over a Unix socket.
    pub(crate) fn address(self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(address.ip().to_canonical()),
            Self::Local => None,
        }
    }

    /// It is on this machine.
    pub(crate) fn is_loopback(self) -> bool {
        self.address().is_none_or(|address| address.is_loopback())
    }
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(formatter),
            Self::Local => formatter.write_str("unix socket"),
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
            let peer = Peer::Address(text.parse().unwrap());
            assert_eq!(peer.is_loopback(), expected, "{text}");
        }
        assert!(Peer::Local.is_loopback());
    }
}
