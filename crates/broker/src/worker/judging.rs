//! How a client is to be judged: by what it shows, who there is to verify that, and who may come in
//! without.

use thrum_access::{Identity, Login};
use thrum_codec::ReasonCode;
use thrum_codec::packet::Connect;
use thrum_protocol::Violation;

use super::Worker;
use crate::config::Anonymous;
use crate::ids::ConnectionKey;

/// Who judges a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judge {
    /// It comes in without having shown anything that could be verified.
    Anonymous,
    /// Its certificate is enough.
    Certificate,
    /// The gatekeeper.
    Gatekeeper,
    /// It has shown nothing, and that is not enough here.
    Nobody,
}

/// Whether the client names a user, or has a password.
pub(super) fn shows_something(login: &Login) -> bool {
    login.identity.username.is_some() || login.password.is_some()
}

/// Whether somebody has verified who the client is.
pub(super) fn is_verified(identity: &Identity) -> bool {
    identity.username.is_some() || identity.backend.is_some()
}

/// Why a client without credentials stays out of a node without users, and what to do about it.
const fn advice_without_users(anonymous: Anonymous) -> &'static str {
    match anonymous {
        Anonymous::Nobody => {
            "auth.anonymous = false admits nobody without credentials; add a user with: thrum users add NAME"
        }
        Anonymous::Loopback | Anonymous::Everyone => {
            "anonymous clients are allowed from this machine only; add a user with: thrum users add NAME, or set \
             auth.anonymous = true to let every client in"
        }
    }
}

impl Worker {
    pub(super) fn judge(&mut self, key: ConnectionKey, login: &Login) -> Judge {
        let has_gatekeeper = self.local.settings.access.access.gatekeeper.is_some();
        if login.method.is_some() || (shows_something(login) && has_gatekeeper) {
            return Judge::Gatekeeper;
        }
        if login.is_username_verified {
            return Judge::Certificate;
        }
        let connection = &self.local.connections[key];
        let (number, is_loopback) = (connection.gate, connection.peer.is_loopback());
        let of_node = self.local.settings.anonymous;
        let of_gate = self.local.gate(number).anonymous;
        if of_gate.unwrap_or(of_node).admits(is_loopback) {
            Judge::Anonymous
        } else {
            Judge::Nobody
        }
    }

    pub(super) fn refuse_stranger(&mut self, key: ConnectionKey, connect: &Connect<'_>) {
        if self.may_log() {
            let gate = self.local.connections[key].gate;
            let of_gate = self.local.gate(gate).anonymous;
            let anonymous = of_gate.unwrap_or(self.local.settings.anonymous);
            let connection = &self.local.connections[key];
            let (peer, client_id) = (connection.peer, connect.client_id);
            if self.local.settings.access.access.gatekeeper.is_some() {
                tracing::warn!(%peer, client_id, "refused: it shows no credentials, and anonymous clients are not \
                     admitted from here (auth.anonymous)");
            } else {
                let advice = advice_without_users(anonymous);
                tracing::warn!(%peer, client_id, "refused: no users are set up, and {advice}");
            }
        }
        let what = "not authorized: the broker admits no clients without credentials from here \
                    (auth.anonymous in its configuration)";
        let violation = Violation::new(ReasonCode::NotAuthorized, what);
        self.refuse(key, connect, &violation);
    }

    /// A client that nobody has verified stays as long as it would be let in again.
    pub(super) fn may_stay(&mut self, key: ConnectionKey) -> Result<(), Violation> {
        let connection = &self.local.connections[key];
        let (number, is_loopback) = (connection.gate, connection.peer.is_loopback());
        let has_gatekeeper = self.local.settings.access.access.gatekeeper.is_some();
        if connection.is_unverified && has_gatekeeper {
            let what = "users have been set up since this client came in: log in again";
            return Err(Violation::new(ReasonCode::NotAuthorized, what));
        }
        let of_node = self.local.settings.anonymous;
        let of_gate = self.local.gate(number).anonymous_now();
        if of_gate.unwrap_or(of_node).admits(is_loopback) {
            return Ok(());
        }
        let what = "clients without credentials are no longer admitted from here (auth.anonymous)";
        Err(Violation::new(ReasonCode::NotAuthorized, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_admits_nobody_is_not_told_that_this_machine_is_admitted() {
        let advice = advice_without_users(Anonymous::Nobody);
        assert!(!advice.contains("this machine"), "{advice}");
        assert!(advice.contains("auth.anonymous = false"), "{advice}");
        let advice = advice_without_users(Anonymous::Loopback);
        assert!(advice.contains("from this machine only"), "{advice}");
    }
}
