//! Keys at an address (JWKS): fetched periodically, and when a token names an unknown one.

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
use crate::panics;

/// Time between two fetches for unknown keys: invented tokens must not make the broker ask all the
/// time.
const PAUSE: Duration = Duration::from_secs(10);
/// Most redirections that are followed.
const REDIRECTS_MAX: usize = 3;

/// A key set at an address.
pub(super) struct Remote {
    name: String,
    url: Url,
    client: Client,
    /// Time between two fetches for unknown keys.
    pause: Duration,
    allowed: Vec<Algorithm>,
    /// Guards the exchange of one pointer. None until the first fetch succeeded.
    keys: RwLock<Option<Arc<Keys>>>,
    /// Held while the keys are fetched, so that there is one fetch at a time: when it was done
    /// last, and how.
    last: Mutex<Option<Fetched>>,
}

struct Fetched {
    at: Duration,
    error: Option<String>,
}

impl Remote {
    /// Begins to fetch, and continues as long as it is used.
    ///
    /// # Errors
    /// The address or the authority's file is bad.
    pub(super) fn start(
        name: &str,
        config: &JwtConfig,
        allowed: Vec<Algorithm>,
    ) -> Result<Arc<Self>, String> {
        let remote = Arc::new(Self::new(name, config, allowed, PAUSE)?);
        let fresh = keep_fresh(Arc::downgrade(&remote), config.refresh.max(PAUSE));
        tokio::spawn(fresh);
        Ok(remote)
    }

    fn new(
        name: &str,
        config: &JwtConfig,
        allowed: Vec<Algorithm>,
        pause: Duration,
    ) -> Result<Self, String> {
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
        Ok(Self {
            name: name.to_owned(),
            url,
            client: client.build().map_err(|error| format!("jwks: {error}"))?,
            pause,
            allowed,
            keys: RwLock::new(None),
            last: Mutex::new(None),
        })
    }

    /// The known keys; waits for the first fetch.
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
            && now.saturating_sub(fetched.at) < self.pause
        {
            return match &fetched.error {
                // Another caller that waited for the same fetch finds its keys.
                None => Ok(true),
                Some(error) => Err(BackendError::Unreachable(error.clone())),
            };
        }
        let error = panics::caught(self.fetch()).await.err();
        *last = Some(Fetched {
            at: clock::uptime(),
            error: error.clone(),
        });
        match error {
            None => Ok(true),
            Some(error) => Err(BackendError::Unreachable(error)),
        }
    }

    /// Fetches the keys; the known ones stay if that fails.
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

/// Ends when the keys are no longer used.
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use jsonwebtoken::{EncodingKey, Header, encode};
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::super::keys::Signature;
    use super::*;

    const SECRET: &[u8] = b"a secret of at least 32 bytes, as it has to be";

    /// An issuer with configurable answers, which counts requests.
    struct Issuer {
        address: String,
        said: Arc<Mutex<(u32, String)>>,
    }

    async fn answers(listener: TcpListener, said: Arc<Mutex<(u32, String)>>) {
        while let Ok((stream, _)) = listener.accept().await {
            let text = next_answer(&said);
            serve(stream, &text).await;
        }
    }

    fn next_answer(said: &Mutex<(u32, String)>) -> String {
        let mut said = said.lock().unwrap();
        said.0 += 1;
        said.1.clone()
    }

    impl Issuer {
        async fn start() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = format!("http://{}/keys", listener.local_addr().unwrap());
            let said = Arc::new(Mutex::new((0, failure())));
            let answer = Arc::clone(&said);
            tokio::spawn(answers(listener, answer));
            Self { address, said }
        }

        fn says(&self, text: String) {
            self.said.lock().unwrap().1 = text;
        }

        fn asked(&self) -> u32 {
            self.said.lock().unwrap().0
        }

        fn remote(&self, pause: Duration) -> Remote {
            let config = JwtConfig {
                jwks: self.address.clone(),
                ..JwtConfig::default()
            };
            Remote::new("idp", &config, vec![Algorithm::HS256], pause).unwrap()
        }
    }

    async fn serve(mut stream: TcpStream, text: &str) {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        // A client that has read enough goes away.
        stream.write_all(text.as_bytes()).await.ok();
    }

    fn failure() -> String {
        "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            .to_owned()
    }

    fn success(body: &str) -> String {
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
    }

    fn set(id: &str) -> String {
        let secret = URL_SAFE_NO_PAD.encode(SECRET);
        let key: Value = json!({"kty": "oct", "kid": id, "k": secret});
        success(&json!({ "keys": [key] }).to_string())
    }

    fn token(id: &str) -> String {
        let header = Header {
            kid: Some(id.to_owned()),
            ..Header::new(Algorithm::HS256)
        };
        encode(&header, &json!({}), &EncodingKey::from_secret(SECRET)).unwrap()
    }

    #[tokio::test]
    async fn keys_are_fetched_again_and_the_old_ones_stay_if_that_fails() {
        let issuer = Issuer::start().await;
        let remote = issuer.remote(Duration::ZERO);
        let error = remote.keys().await.unwrap_err();
        assert!(
            matches!(&error, BackendError::Unreachable(why) if why.contains("500")),
            "{error}"
        );

        issuer.says(set("one"));
        let keys = remote.keys().await.unwrap();
        assert!(matches!(keys.verify(&token("one")), Signature::Good(_)));
        assert!(matches!(keys.verify(&token("two")), Signature::UnknownKey));

        let long = "x".repeat(usize::try_from(KEYS_BYTES_MAX).unwrap() + 1);
        for bad in [failure(), success("no keys"), success(&long)] {
            issuer.says(bad);
            assert!(remote.look_again().await.is_err());
            let keys = remote.keys().await.unwrap();
            assert!(matches!(keys.verify(&token("one")), Signature::Good(_)));
        }

        issuer.says(set("two"));
        assert!(remote.look_again().await.unwrap());
        let keys = remote.keys().await.unwrap();
        assert!(matches!(keys.verify(&token("two")), Signature::Good(_)));
        assert!(matches!(keys.verify(&token("one")), Signature::UnknownKey));
    }

    #[tokio::test]
    async fn made_up_tokens_do_not_make_it_ask_all_the_time() {
        let issuer = Issuer::start().await;
        issuer.says(set("one"));
        let remote = issuer.remote(Duration::from_hours(1));
        for _ in 0..10 {
            remote.keys().await.unwrap();
            assert!(remote.look_again().await.unwrap());
        }
        assert_eq!(issuer.asked(), 1);
    }
}
