//! Logins by users or certificates, and a check that the node confuses no clients.

use std::sync::{Arc, Mutex, PoisonError};

use thrum_access::{Admission, Answer, Certificate, Gatekeeper, Identity, Login, Reply};

use super::history::ClientNumber;
use super::world::Failure;

/// Admits every client, and records the first client with a wrong identity.
#[derive(Debug, Default)]
pub(super) struct CheckingGatekeeper(Mutex<Option<Failure>>);

/// Every second client has a certificate; the others name their user.
pub(super) fn has_certificate(client: ClientNumber) -> bool {
    client.is_multiple_of(2)
}

/// The user name of a client, which equals its identifier.
pub(super) fn user(client: ClientNumber) -> String {
    format!("c{client}")
}

/// A certificate that a proxy or QUIC verified before the connection was accepted.
pub(super) fn certificate(client: ClientNumber) -> Option<Arc<Certificate>> {
    has_certificate(client).then(|| {
        Arc::new(Certificate {
            common_name: Some(user(client).into()),
            ..Certificate::default()
        })
    })
}

impl CheckingGatekeeper {
    /// An error if a client had a wrong identity.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let fault = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        fault.clone().map_or(Ok(()), Err)
    }

    fn check(&self, identity: &Identity) {
        let name = identity.certificate.as_deref();
        let name = name.and_then(|certificate| certificate.common_name.as_deref());
        let number = identity.client_id.strip_prefix('c');
        let number = number.and_then(|number| number.parse().ok());
        let shows = number.is_some_and(has_certificate);
        let is_itself = identity.username.as_deref() == Some(&*identity.client_id)
            && name == shows.then_some(&*identity.client_id);
        if !is_itself {
            let fault = format!("a client has a wrong identity: {identity:?}");
            let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(fault);
        }
    }
}

impl Gatekeeper for CheckingGatekeeper {
    fn login(&self, login: Login, reply: Reply<Answer>) {
        self.check(&login.identity);
        reply(Answer::Admit(Box::new(Admission {
            identity: login.identity,
            ..Admission::default()
        })));
    }
}
