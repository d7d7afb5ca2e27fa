//! Resumption of earlier TLS sessions.

use std::sync::Arc;

use aws_lc_rs::digest;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::{ProducesTickets, ServerSessionMemoryCache, StoresServerSessions};
use rustls::{Error, ServerConfig};

/// Sessions that a listener stores for clients without tickets: some 300 bytes each, and the
/// certificate of a client that has presented one.
const SESSIONS_MAX: usize = 4096;

/// The state that resumes sessions; listeners of two generations share it if they trust the same
/// clients.
///
/// A resumed session is not verified again, it has the certificate of the earlier one: so a client
/// that was admitted under other authorities, revocation lists or requirements must not return by
/// resumption.
#[derive(Clone)]
pub(super) struct Resumption {
    trust: Trust,
    /// None if everything is stored here.
    ticketer: Option<Arc<dyn ProducesTickets>>,
    memory: Arc<dyn StoresServerSessions>,
}

/// The parameters of client verification: equal if the same clients are admitted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Trust([u8; 32]);

impl Trust {
    /// From everything that the verification of clients depends on.
    pub(super) fn of<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut trust = [0; 32];
        trust.copy_from_slice(context.finish().as_ref());
        Self(trust)
    }
}

impl Resumption {
    /// That of the previous generation, if its parameters are equal.
    pub(super) fn new(
        trust: Trust,
        session_tickets: bool,
        previous: Option<&Self>,
    ) -> Result<Self, Error> {
        let shared = previous
            .filter(|other| other.trust == trust && other.ticketer.is_some() == session_tickets);
        if let Some(shared) = shared {
            return Ok(shared.clone());
        }
        Ok(Self {
            trust,
            ticketer: session_tickets.then(Ticketer::new).transpose()?,
            memory: ServerSessionMemoryCache::new(SESSIONS_MAX),
        })
    }

    pub(super) fn apply(&self, config: &mut ServerConfig) {
        config.session_storage = Arc::clone(&self.memory);
        if let Some(ticketer) = &self.ticketer {
            config.ticketer = Arc::clone(ticketer);
        }
    }
}
