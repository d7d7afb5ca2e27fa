//! Keys at an address (JWKS), in a program that was built without an HTTP client.

use std::sync::Arc;

use jsonwebtoken::Algorithm;
use thrum_settings::LeftOut;

use super::keys::Keys;
use crate::backend::BackendError;
use crate::config::JwtConfig;

/// A key set at an address: not supported by this build.
#[derive(Debug)]
pub(super) enum Remote {}

impl Remote {
    /// Refuses the address.
    ///
    /// # Errors
    /// Always.
    pub(super) fn start(
        _name: &str,
        _config: &JwtConfig,
        _allowed: Vec<Algorithm>,
    ) -> Result<Arc<Self>, String> {
        Err(format!("jwks: {}", LeftOut("http-auth")))
    }

    #[expect(
        clippy::unused_async,
        reason = "the other version asks over the network"
    )]
    pub(super) async fn keys(&self) -> Result<Arc<Keys>, BackendError> {
        match *self {}
    }

    #[expect(
        clippy::unused_async,
        reason = "the other version asks over the network"
    )]
    pub(super) async fn look_again(&self) -> Result<bool, BackendError> {
        match *self {}
    }
}
