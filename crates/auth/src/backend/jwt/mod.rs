//! Tokens: JWT signed by an issuer whose key is known.
//!
//! The algorithm that a token names only chooses among those that the configuration allows for the
//! key.

mod acl;
mod claims;
mod keys;
#[cfg(feature = "http-auth")]
mod remote;
#[cfg(not(feature = "http-auth"))]
#[path = "remote_left_out.rs"]
mod remote;
mod source;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use thrum_access::Login;

use super::{Asked, Backend, BackendError, Verdict};
use crate::clock;
use crate::config::{JwtConfig, TokenField};
use claims::Claims;
use keys::Signature;
pub use keys::{Keys as TokenKeys, Signature as TokenSignature};
use source::Source;

/// Verifies tokens of one issuer.
#[derive(Debug)]
pub(crate) struct Jwt {
    name: String,
    field: TokenField,
    source: Source,
    claims: Claims,
}

impl Jwt {
    /// Reads its keys; keys at an address are fetched from now on. Must be called in the runtime.
    ///
    /// # Errors
    /// The settings contradict each other, or a file cannot be read.
    pub(crate) fn load(name: &str, config: &JwtConfig) -> Result<Arc<Self>, String> {
        let in_table = |problem: String| format!("auth.jwt.{name}: {problem}");
        Ok(Arc::new(Self {
            name: name.to_owned(),
            field: config.from,
            claims: Claims::new(name, config).map_err(in_table)?,
            source: Source::load(name, config).map_err(in_table)?,
        }))
    }

    async fn ask(&self, login: &Login) -> Result<Verdict, BackendError> {
        let token = match self.field {
            TokenField::Password => login.password.as_ref().and_then(|it| it.expose_str()),
            TokenField::Username => login.identity.username.as_deref(),
        };
        let Some(token) = token else {
            return Ok(Verdict::Ignore);
        };
        let mut signature = self.source.keys().await?.verify(token);
        if matches!(signature, Signature::UnknownKey) && self.source.look_again().await? {
            signature = self.source.keys().await?.verify(token);
        }
        Ok(match signature {
            Signature::Good(claims) => self.claims.verify(&claims, login, clock::wall_secs()),
            Signature::Bad(why) => Verdict::Deny(why.into()),
            Signature::UnknownKey | Signature::None => Verdict::Ignore,
        })
    }
}

impl Backend for Jwt {
    fn name(&self) -> &str {
        &self.name
    }

    fn login<'a>(&'a self, login: &'a Login) -> Asked<'a, Verdict> {
        Box::pin(self.ask(login))
    }

    fn reread(&self) -> Result<bool, String> {
        self.source.reread()
    }
}
