//! Choice of how a client is verified: by its credentials, the backends that could verify them, and
//! the rules for anonymous clients.

use thrum_access::{Identity, Login};
use thrum_codec::ReasonCode;
use thrum_engine::ids::ConnectionKey;
use thrum_protocol::Violation;
use thrum_protocol::server::Handshake;

use super::checks::Checks;
use crate::config::Anonymous;

/// The refusal of a client without credentials, where anonymous clients are not admitted.
pub(super) const NO_CREDENTIALS: Violation = Violation::new(
    ReasonCode::NotAuthorized,
    "not authorized: the broker admits no clients without credentials from here \
     (auth.anonymous in its configuration)",
);

/// The verification that a client needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judge {
    /// It is admitted without verified credentials.
    Anonymous,
    /// Its certificate is sufficient.
    Certificate,
    /// The gatekeeper decides.
    Gatekeeper,
    /// It has no credentials, and anonymous clients are not admitted here.
    Refused,
}

/// Whether the client sends a user name or a password.
pub(crate) fn has_credentials(login: &Login) -> bool {
    login.identity.username.is_some() || login.password.is_some()
}

/// Whether the client's identity is verified.
pub(crate) fn is_verified(identity: &Identity) -> bool {
    identity.username.is_some() || identity.backend.is_some()
}

/// Why a node without users refuses a client without credentials, and the remedy.
const fn advice_without_users(anonymous: Anonymous) -> &'static str {
    match anonymous {
        Anonymous::Deny => {
            "auth.anonymous = false admits nobody without credentials; add a user with: thrum users add NAME"
        }
        Anonymous::Loopback | Anonymous::Allow => {
            "anonymous clients are allowed from this machine only; add a user with: thrum users add NAME, or set \
             auth.anonymous = true to let every client in"
        }
    }
}

impl Checks<'_> {
    /// Chooses the judge of the client.
    pub(super) fn judge(&mut self, key: ConnectionKey, login: &Login) -> Judge {
        let has_gatekeeper = self.engine.core.settings.access.access.gatekeeper.is_some();
        if login.method.is_some() || (has_credentials(login) && has_gatekeeper) {
            return Judge::Gatekeeper;
        }
        if login.is_username_verified {
            return Judge::Certificate;
        }
        let connection = &self.edge.connections[key];
        let (number, is_loopback) = (connection.gate, connection.peer.is_loopback());
        let of_node = self.edge.settings.anonymous;
        let of_gate = self.edge.gates.get(number).anonymous;
        if of_gate.unwrap_or(of_node).admits(is_loopback) {
            Judge::Anonymous
        } else {
            Judge::Refused
        }
    }

    pub(super) fn log_no_credentials(&mut self, key: ConnectionKey, handshake: &Handshake) {
        if self.engine.core.may_log() {
            let gate = self.edge.connections[key].gate;
            let of_gate = self.edge.gates.get(gate).anonymous;
            let anonymous = of_gate.unwrap_or(self.edge.settings.anonymous);
            let connection = &self.edge.connections[key];
            let (peer, client_id) = (connection.peer, handshake.client_id());
            if self.engine.core.settings.access.access.gatekeeper.is_some() {
                tracing::warn!(%peer, client_id, "refused: it shows no credentials, and anonymous clients are not \
                     admitted from here (auth.anonymous)");
            } else {
                let advice = advice_without_users(anonymous);
                tracing::warn!(%peer, client_id, "refused: no users are set up, and {advice}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_admits_no_anonymous_client_does_not_advise_to_use_this_machine() {
        let advice = advice_without_users(Anonymous::Deny);
        assert!(!advice.contains("this machine"), "{advice}");
        assert!(advice.contains("auth.anonymous = false"), "{advice}");
        let advice = advice_without_users(Anonymous::Loopback);
        assert!(advice.contains("from this machine only"), "{advice}");
    }
}
