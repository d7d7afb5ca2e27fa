//! SCRAM-SHA-256 (RFC 5802, RFC 7677), both sides: each proves that it knows the password, the
//! password is never sent, and the server's stored credential does not suffice to log in.
//!
//! ```text
//!   client                                  server
//!   CONNECT  n,,n=user,r=nonce           ->
//!            <- AUTH   r=nonce…,s=salt,i=iterations
//!   AUTH     c=biws,r=nonce…,p=proof     ->
//!            <- CONNACK v=signature
//! ```
//!
//! Invariant: messages in, messages out, without socket, clock or file; of the system only random
//! numbers. Keys, proofs and signatures are compared in constant time, and none is printed.
#![forbid(unsafe_code)]

pub mod client;
mod credential;
mod keys;
mod message;
pub mod server;
#[cfg(test)]
mod tests;

pub use credential::{Credential, CredentialRecord, Decoys};

/// Name of the method.
pub const METHOD: &str = "SCRAM-SHA-256";

/// Fewest accepted iterations, the minimum of RFC 7677: a server that requests fewer may want to
/// make the password easy to guess.
const ITERATIONS_MIN: u32 = 4096;
/// Most iterations that are accepted, some seconds of work: a server that requests more wants to
/// keep its clients busy.
const ITERATIONS_MAX: u32 = 10_000_000;
