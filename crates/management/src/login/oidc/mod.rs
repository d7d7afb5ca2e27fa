//! Login at another place: OpenID Connect, the code flow with PKCE.
//!
//! ```text
//!   browser -> begin: cookie, redirect -> provider -> callback: code, state, cookie
//!     -> token of the provider -> signature, claims -> groups -> role -> session
//! ```
//!
//! Invariant: nobody has a session without a token that the provider signed for this broker and for
//! the very login that this browser began; nothing is kept between its two requests.

mod claims;
mod config;
mod proof;
mod provider;

use std::path::Path;
use std::time::Duration;

use thiserror::Error;
use thrum_access::Secret;
use thrum_files::read_named;
use tokio::sync::Semaphore;

pub use config::OidcConfig;

use super::digest;
use super::refusal::Refusal;
use crate::clock::Now;
use claims::{Claims, Person};
use proof::Proof;
use provider::Provider;

/// Exchanges with the provider at once: each may wait for it.
const EXCHANGES_MAX: usize = 4;
/// Bytes of a code or state that are read.
const PARAMETER_BYTES_MAX: usize = 4096;
/// Most bytes of a file of the configuration.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Time for the login at the provider, after which the browser forgets its cookie.
const LOGIN_TIME: Duration = Duration::from_mins(15);

/// Why the settings of a provider cannot be used.
#[derive(Debug, Error)]
#[error("management.oidc: {0}")]
pub struct OidcError(String);

/// A provider, and who may log in there.
#[derive(Debug)]
pub(crate) struct Oidc {
    provider: Provider,
    claims: Claims,
    exchanges: Semaphore,
}

/// What a browser is told to do.
#[derive(Debug)]
pub(crate) struct Begun {
    /// Address of the provider, with the request.
    pub(crate) location: String,
    /// `Set-Cookie` that ties the login to this browser.
    pub(crate) cookie: String,
}

/// What a browser brings back from the provider.
#[derive(Clone, Debug)]
pub(crate) struct Callback {
    /// The code.
    pub(crate) code: Secret,
    /// The state that the provider was given.
    pub(crate) state: String,
}

/// The provider of these settings; none if nothing is set.
///
/// # Errors
/// They cannot be used.
pub(crate) fn oidc_of(config: &OidcConfig) -> Result<Option<Oidc>, OidcError> {
    config.is_set().then(|| Oidc::new(config)).transpose()
}

impl Oidc {
    /// Checks the settings; the provider is not asked yet.
    fn new(config: &OidcConfig) -> Result<Self, OidcError> {
        if config.issuer.is_empty() {
            let what = "issuer is missing, the address of the provider".to_owned();
            return Err(OidcError(what));
        }
        Ok(Self {
            claims: Claims::new(config).map_err(OidcError)?,
            provider: Provider::new(config).map_err(OidcError)?,
            exchanges: Semaphore::new(EXCHANGES_MAX),
        })
    }

    /// Begins a login.
    ///
    /// # Errors
    /// The provider does not answer, or too many logins wait for it.
    pub(super) async fn begin(&self, is_tls: bool, now: Now) -> Result<Begun, Refusal> {
        let _permit = self.exchanges.try_acquire().map_err(|_| Refusal::Busy)?;
        let proof = Proof::new(digest::random()?);
        Ok(Begun {
            location: self.provider.request(&proof, now.uptime).await?,
            cookie: proof.cookie(is_tls, LOGIN_TIME),
        })
    }

    /// Ends a login: who it is.
    ///
    /// # Errors
    /// This browser has not begun it, the provider does not confirm it, or the person has no role.
    pub(super) async fn finish(
        &self,
        callback: &Callback,
        proof: &Proof,
        now: Now,
    ) -> Result<Person, Refusal> {
        let code = callback.code.expose_str().unwrap_or_default();
        let is_long = code.len().max(callback.state.len()) > PARAMETER_BYTES_MAX;
        if is_long || !proof.is_state(&callback.state) {
            return Err(Refusal::OtherLogin);
        }
        let _permit = self.exchanges.try_acquire().map_err(|_| Refusal::Busy)?;
        let token = self.provider.exchange(code, proof, now.uptime).await?;
        let claims = self.provider.verify(&token, now.uptime).await?;
        let nonce = proof.nonce();
        self.claims.person(&claims, &nonce, now.wall_millis / 1000)
    }
}

/// Reads a file of the configuration.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    read_named(path, FILE_BYTES_MAX)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))
}

pub(super) use proof::{proofs, remove_cookie};
