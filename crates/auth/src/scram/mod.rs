//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's side: the password is never sent, and the
//! stored credential does not suffice to log in.

mod credential;
mod exchange;
mod message;
#[cfg(test)]
pub(crate) mod test_client;

pub use credential::Credential;

pub(crate) use credential::{CredentialRecord, Decoys};
pub(crate) use exchange::{Started, start};

/// Name of the method.
pub(crate) const METHOD: &str = "SCRAM-SHA-256";
