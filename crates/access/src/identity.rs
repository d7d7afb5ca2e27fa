//! The identity of a client.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

/// A client as rules, placeholders and logs see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Client identifier, the assigned one if the client sent none.
    pub client_id: Box<str>,
    /// Verified user name, or that of the client certificate; none for an anonymous client.
    pub username: Option<Box<str>>,
    /// Roles of the user, its own and those of its groups.
    pub roles: Vec<Box<str>>,
    /// Groups of the user.
    pub groups: Vec<Box<str>>,
    /// Address of the client, from a trusted proxy if there is one; none over a Unix socket.
    pub address: Option<IpAddr>,
    /// Name of the listener of its connection.
    pub listener: Arc<str>,
    /// Its verified certificate.
    pub certificate: Option<Arc<Certificate>>,
    /// Claims of its token that are text, numbers or truth values, by name, as text.
    pub claims: Vec<(Box<str>, Box<str>)>,
    /// Every action is allowed.
    pub is_superuser: bool,
    /// Name of the backend that admitted it; none for an anonymous client, and for one that its
    /// certificate alone admitted.
    pub backend: Option<Arc<str>>,
}

impl Identity {
    /// The common name of its certificate.
    pub fn common_name(&self) -> Option<&str> {
        self.certificate.as_ref()?.common_name.as_deref()
    }

    /// A claim of its token.
    pub fn claim(&self, name: &str) -> Option<&str> {
        let (_, value) = self.claims.iter().find(|(claim, _)| **claim == *name)?;
        Some(value)
    }
}

/// A client certificate that was verified against the listener's authorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// The first common name of the subject.
    pub common_name: Option<Box<str>>,
    /// The subject as RFC 4514 writes it: `CN=device-1,O=Example`.
    pub subject: Box<str>,
    /// Subject alternative names that are DNS names.
    pub dns_names: Vec<Box<str>>,
    /// Subject alternative names that are mail addresses.
    pub emails: Vec<Box<str>>,
    /// Subject alternative names that are URIs.
    pub uris: Vec<Box<str>>,
    /// Serial number in lower-case hexadecimal.
    pub serial: Box<str>,
    /// SHA-256 of the DER form.
    pub fingerprint: [u8; 32],
}
