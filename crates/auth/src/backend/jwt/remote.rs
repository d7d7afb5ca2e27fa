//! Keys of an address (JWKS): fetched now and then, and when a token names one that is not known.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use jsonwebtoken::Algorithm;
use reqwest::{Certificate, Client, Url, redirect};
use tokio::sync::Mutex;
use tokio::time::sleep;
use tracing::warn;

use super::keys::Keys;
use super::source::{KEYS_BYTES_MAX, read};
use crate::backend::BackendError;
use crate::clock;
use crate::config::JwtConfig;

/// Time between two fetches for unknown keys: whoever makes up tokens must not make the broker ask all the time.
const PAUSE: Duration = Duration::from_secs(10);
/// Most redirections that are followed.
const REDIRECTS_MAX: usize = 3;

/// A key set at an address.
pub(super) struct Remote {
    name: String,
    url: Url,
    client: Client,
    allowed: Vec<Algorithm>,
    /// Guards the exchange of one pointer. None until the first fetch succeeded.
    keys: RwLock<Option<Arc<Keys>>>,
    /// Held while the keys are fetched, so that there is one fetch at a time: when it was done last, and how.
    last: Mutex<Option<Fetched>>,
}

struct Fetched {
    at: Duration,
    error: Option<String>,
}

impl Remote {
    /// Begins to fetch, and goes on as long as it is used.
    ///
    /// # Errors
    /// The address or the authority's file is bad.
    pub(super) fn start(
        name: &str,
        config: &JwtConfig,
        allowed: Vec<Algorithm>,
    ) -> Result<Arc<Self>, String> {
        let url = Url::parse(&config.jwks).map_err(|error| format!("jwks: {error}"))?;
        let mut client = Client::builder()
            .timeout(config.timeout)
            .redirect(redirect::Policy::limited(REDIRECTS_MAX))
            .https_only(url.scheme() == "https");
        if !config.ca.as_os_str().is_empty() {
            let pem = read(&config.ca)?;
            let authorities = Certificate::from_pem_bundle(&pem);
            let authorities = authorities.map_err(|_| "ca: no certificate in PEM".to_owned())?;
            client = client.tls_certs_only(authorities);
        }
        let remote = Arc::new(Self {
            name: name.to_owned(),
            url,
            client: client.build().map_err(|error| format!("jwks: {error}"))?,
            allowed,
            keys: RwLock::new(None),
            last: Mutex::new(None),
        });
        tokio::spawn(keep_fresh(Arc::downgrade(&remote), config.refresh.max(PAUSE)));
        Ok(remote)
    }

    /// The keys that are known; waits for the first fetch.
    pub(super) async fn keys(&self) -> Result<Arc<Keys>, BackendError> {
        if let Some(keys) = self.known() {
            return Ok(keys);
        }
        self.look_again().await?;
        let none = || BackendError::Unreachable("no keys were fetched yet".to_owned());
        self.known().ok_or_else(none)
    }

    fn known(&self) -> Option<Arc<Keys>> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.clone()
    }

    /// Fetches, unless that was done a moment ago. True if there may be new keys.
    ///
    /// # Errors
    /// They cannot be fetched, now or a moment ago.
    pub(super) async fn look_again(&self) -> Result<bool, BackendError> {
        let mut last = self.last.lock().await;
        let now = clock::uptime();
        if let Some(fetched) = &*last
            && now.saturating_sub(fetched.at) < PAUSE
        {
            return match &fetched.error {
                // Somebody who waited for the same fetch finds its keys.
                None => Ok(true),
                Some(error) => Err(BackendError::Unreachable(error.clone())),
            };
        }
        let error = self.fetch().await.err();
        *last = Some(Fetched {
            at: clock::uptime(),
            error: error.clone(),
        });
        match error {
            None => Ok(true),
            Some(error) => Err(BackendError::Unreachable(error)),
        }
    }

    /// Fetches the keys; those that were known stay if that fails.
    async fn fetch(&self) -> Result<(), String> {
        let explain = |error: reqwest::Error| describe(&error.without_url());
        let response = self.client.get(self.url.clone()).send().await;
        let mut response = response
            .and_then(reqwest::Response::error_for_status)
            .map_err(explain)?;
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await.map_err(explain)? {
            body.extend_from_slice(&part);
            if body.len() as u64 > KEYS_BYTES_MAX {
                return Err(format!("a key set has up to {KEYS_BYTES_MAX} bytes"));
            }
        }
        let keys = Keys::of_set(&body, &self.allowed)?;
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(keys));
        Ok(())
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Remote({})", self.name)
    }
}

/// Ends when nobody uses the keys any more.
async fn keep_fresh(used: Weak<Remote>, every: Duration) {
    loop {
        let Some(remote) = used.upgrade() else {
            return;
        };
        let backend = remote.name.clone();
        if let Err(error) = remote.look_again().await {
            warn!(backend, %error, "the key set was not fetched; the keys known before stay in use");
        }
        drop(remote);
        sleep(every).await;
    }
}

/// An error and its causes, in one line.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
