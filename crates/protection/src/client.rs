//! A client, by the names that it is counted and banned by.

use std::net::{IpAddr, Ipv4Addr};

use thrum_access::Network;

use super::bans::SubjectRef;
use super::logins::LoginAttempt;

/// A client, by the names that it is counted and banned by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientRef<'a> {
    /// Client identifier.
    pub client_id: &'a str,
    /// User name: for a login the client's claim, from
    /// [`Protection::may_enter`](crate::Protection::may_enter) on the verified one.
    pub username: Option<&'a str>,
    /// Address of the client; behind a trusted proxy, the address that the proxy names. `None` over
    /// a Unix socket.
    pub address: Option<IpAddr>,
}

impl<'a> ClientRef<'a> {
    /// This one client: other users may have clients with the same identifier, and so may clients
    /// without user name from other addresses.
    pub fn subject(&self) -> SubjectRef<'a> {
        let client_id = self.client_id;
        if let Some(username) = self.username {
            return SubjectRef::ClientOfUser {
                client_id,
                username,
            };
        }
        // A Unix socket is on this machine.
        let address = self.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        SubjectRef::ClientFrom {
            client_id,
            network: Network::of_client(address),
        }
    }

    /// The client's login, as it is counted; `None` over a Unix socket.
    pub(crate) fn attempt(&self) -> Option<LoginAttempt<'a>> {
        Some(LoginAttempt {
            address: Network::of_client(self.address?),
            username: self.username.unwrap_or_default(),
            client_id: self.client_id,
        })
    }
}
