//! Requests to the provider: its description, its keys, and the token for a code.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Certificate, Client, RequestBuilder, Url, redirect};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use thrum_access::Secret;
use thrum_auth::{TokenKeys, TokenSignature};
use tokio::sync::Mutex;
use url::form_urlencoded::Serializer;
use zeroize::Zeroizing;

use super::super::refusal::Refusal;
use super::config::OidcConfig;
use super::proof::Proof;
use super::read;

/// Time for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// Description and keys are fetched again after this time.
const FRESH_TIME: Duration = Duration::from_mins(15);
/// Time between two fetches for unknown keys: invented tokens do not make the broker ask all the
/// time.
const PAUSE: Duration = Duration::from_secs(10);
/// Where a provider describes itself, below its address.
const DESCRIPTION: &str = "/.well-known/openid-configuration";
/// The end of the address that browsers come back to.
const CALLBACK: &str = "/api/v1/login/oidc/callback";

/// A provider.
#[derive(Debug)]
pub(super) struct Provider {
    issuer: String,
    client_id: String,
    client_secret: Option<Secret>,
    redirect_uri: String,
    scope: String,
    client: Client,
    /// Held while they are fetched, so that there is one fetch at a time.
    known: Mutex<Option<Known>>,
}

/// What is known of it.
#[derive(Clone, Debug)]
struct Known {
    description: Arc<Description>,
    keys: Arc<TokenKeys>,
    /// Time since the start.
    fetched: Duration,
}

/// How a provider describes itself: OpenID Connect Discovery 1.0, §3.
#[derive(Debug, Deserialize)]
struct Description {
    issuer: String,
    #[serde(deserialize_with = "address")]
    authorization_endpoint: Url,
    #[serde(deserialize_with = "address")]
    token_endpoint: Url,
    #[serde(deserialize_with = "address")]
    jwks_uri: Url,
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Url, D::Error> {
    let text = String::deserialize(from)?;
    Url::parse(&text).map_err(Error::custom)
}

/// The answer to a code.
#[derive(Deserialize)]
struct Tokens {
    id_token: String,
}

impl Provider {
    /// Checks the settings, and reads the files that they name.
    pub(super) fn new(config: &OidcConfig) -> Result<Self, String> {
        let issuer = Url::parse(&config.issuer).map_err(|error| format!("issuer: {error}"))?;
        if !is_protected(&issuer) {
            return Err("issuer: expected https://, or http:// on this machine".to_owned());
        }
        Url::parse(&config.redirect_uri).map_err(|error| format!("redirect_uri: {error}"))?;
        if !config.redirect_uri.ends_with(CALLBACK) {
            return Err(format!(
                "redirect_uri: expected an address that ends with {CALLBACK}"
            ));
        }
        let mut client = Client::builder()
            .timeout(ANSWER_TIME)
            .redirect(redirect::Policy::none());
        if !config.ca.as_os_str().is_empty() {
            let authorities = Certificate::from_pem_bundle(&read(&config.ca)?);
            let authorities = authorities.map_err(|_| "ca: no certificate in PEM".to_owned())?;
            client = client.tls_certs_only(authorities);
        }
        let mut scopes = vec!["openid"];
        scopes.extend(
            config
                .scopes
                .iter()
                .map(String::as_str)
                .filter(|one| *one != "openid"),
        );
        Ok(Self {
            issuer: config.issuer.clone(),
            client_id: config.client_id.clone(),
            client_secret: client_secret(config)?,
            redirect_uri: config.redirect_uri.clone(),
            scope: scopes.join(" "),
            client: client.build().map_err(|error| error.to_string())?,
            known: Mutex::new(None),
        })
    }

    /// The address at which a browser begins a login.
    pub(super) async fn request(&self, proof: &Proof, uptime: Duration) -> Result<String, Refusal> {
        let known = self.known(uptime, FRESH_TIME).await?;
        let mut address = known.description.authorization_endpoint.clone();
        address
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client_id)
            .append_pair("redirect_uri", &self.redirect_uri)
            .append_pair("scope", &self.scope)
            .append_pair("state", &proof.state())
            .append_pair("nonce", &proof.nonce())
            .append_pair("code_challenge", &proof.challenge())
            .append_pair("code_challenge_method", "S256");
        Ok(address.into())
    }

    /// The token for a code.
    pub(super) async fn exchange(
        &self,
        code: &str,
        proof: &Proof,
        uptime: Duration,
    ) -> Result<String, Refusal> {
        let known = self.known(uptime, FRESH_TIME).await?;
        let request = self.client.post(known.description.token_endpoint.clone());
        let tokens: Tokens = answer(self.with_code(request, code, proof)).await?;
        Ok(tokens.id_token)
    }

    fn with_code(&self, mut request: RequestBuilder, code: &str, proof: &Proof) -> RequestBuilder {
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &self.redirect_uri)
            .append_pair("code_verifier", &proof.verifier());
        match &self.client_secret {
            // RFC 6749 §2.3.1: both are encoded as in a form first.
            Some(secret) => {
                let pair = [&*self.client_id, secret.expose_str().unwrap_or_default()];
                let pair = Zeroizing::new(pair.map(encoded).join(":"));
                let pair = STANDARD.encode(pair.as_bytes());
                request = request.header(AUTHORIZATION, format!("Basic {pair}"));
            }
            None => {
                form.append_pair("client_id", &self.client_id);
            }
        }
        request
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form.finish())
    }

    /// The claims of a token, if the provider has signed it.
    pub(super) async fn verify(
        &self,
        token: &str,
        uptime: Duration,
    ) -> Result<Map<String, Value>, Refusal> {
        let mut known = self.known(uptime, FRESH_TIME).await?;
        if matches!(known.keys.verify(token), TokenSignature::UnknownKey) {
            known = self.known(uptime, PAUSE).await?;
        }
        match known.keys.verify(token) {
            TokenSignature::Good(claims) => Ok(claims),
            TokenSignature::Bad(why) => Err(Refusal::Provider(format!("its token: {why}"))),
            TokenSignature::UnknownKey | TokenSignature::None => {
                let what = "its token is signed with none of its keys".to_owned();
                Err(Refusal::Provider(what))
            }
        }
    }

    /// Description and keys, fetched again if they are older than that.
    async fn known(&self, uptime: Duration, age_max: Duration) -> Result<Known, Refusal> {
        let mut known = self.known.lock().await;
        if let Some(known) = &*known
            && uptime.saturating_sub(known.fetched) < age_max
        {
            return Ok(known.clone());
        }
        let address = format!("{}{DESCRIPTION}", self.issuer.trim_end_matches('/'));
        let description: Description = answer(self.client.get(address)).await?;
        description.check(&self.issuer)?;
        let keys: Value = answer(self.client.get(description.jwks_uri.clone())).await?;
        let keys = TokenKeys::of_set(keys.to_string().as_bytes(), &[]);
        let fetched = Known {
            description: Arc::new(description),
            keys: Arc::new(keys.map_err(|why| Refusal::Provider(format!("its keys: {why}")))?),
            fetched: uptime,
        };
        *known = Some(fetched.clone());
        Ok(fetched)
    }
}

impl Description {
    /// Refuses one of another provider, or with addresses that anybody could listen to.
    fn check(&self, issuer: &str) -> Result<(), Refusal> {
        let what = if self.issuer != issuer {
            format!("it calls itself {:?} and not {issuer:?}", self.issuer)
        } else if ![
            &self.authorization_endpoint,
            &self.token_endpoint,
            &self.jwks_uri,
        ]
        .into_iter()
        .all(is_protected)
        {
            "it names an address without TLS".to_owned()
        } else {
            return Ok(());
        };
        Err(Refusal::Provider(what))
    }
}

/// Whether nobody on the way can read or change what is sent there.
fn is_protected(address: &Url) -> bool {
    match address.scheme() {
        "https" => true,
        "http" => matches!(
            address.host_str(),
            Some("localhost" | "127.0.0.1" | "[::1]")
        ),
        _ => false,
    }
}

fn client_secret(config: &OidcConfig) -> Result<Option<Secret>, String> {
    let path = &config.client_secret_file;
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let bytes = Zeroizing::new(read(path)?);
    let text = str::from_utf8(&bytes).map_err(|_| "client_secret_file: not UTF-8".to_owned())?;
    Ok(Some(Secret::from(text.trim_end_matches(['\r', '\n']))))
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The answer to a request, as JSON.
async fn answer<T: DeserializeOwned>(request: RequestBuilder) -> Result<T, Refusal> {
    let explain = |error: reqwest::Error| Refusal::Provider(describe(&error.without_url()));
    let request = request.header(ACCEPT, "application/json");
    let mut response = request.send().await.map_err(explain)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(explain)? {
        body.extend_from_slice(&part);
        if body.len() > ANSWER_BYTES_MAX {
            return Err(Refusal::Provider("its answer is too long".to_owned()));
        }
    }
    if !status.is_success() {
        return Err(Refusal::Provider(format!(
            "status {status}{}",
            error_of(&body)
        )));
    }
    serde_json::from_slice(&body)
        .map_err(|_| Refusal::Provider("its answer is not the expected JSON".to_owned()))
}

/// The error of RFC 6749 §5.2 in an answer: a word.
fn error_of(body: &[u8]) -> String {
    let body: Option<Value> = serde_json::from_slice(body).ok();
    let word = body.as_ref().and_then(|body| body.get("error")?.as_str());
    let is_word = |word: &&str| word.len() <= 64 && word.bytes().all(|one| one.is_ascii_graphic());
    word.filter(is_word)
        .map_or_else(String::new, |word| format!(": {word}"))
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
    use super::*;

    fn config() -> OidcConfig {
        OidcConfig {
            issuer: "https://idp.example/realm".to_owned(),
            client_id: "broker".to_owned(),
            redirect_uri: format!("https://broker.example{CALLBACK}"),
            ..OidcConfig::default()
        }
    }

    #[test]
    fn settings_that_would_send_a_code_in_the_clear_are_refused() {
        assert!(Provider::new(&config()).is_ok());
        for issuer in ["http://idp.example", "ftp://idp.example", "idp.example", ""] {
            let config = OidcConfig {
                issuer: issuer.to_owned(),
                ..config()
            };
            let error = Provider::new(&config).unwrap_err();
            assert!(error.starts_with("issuer: "), "{error}");
        }
        let config = OidcConfig {
            redirect_uri: "https://broker.example/".to_owned(),
            ..config()
        };
        let error = Provider::new(&config).unwrap_err();
        assert!(error.starts_with("redirect_uri: "), "{error}");
    }

    #[test]
    fn a_description_of_another_provider_or_without_tls_is_refused() {
        let description = |issuer: &str, token: &str| Description {
            issuer: issuer.to_owned(),
            authorization_endpoint: Url::parse("https://idp.example/a").unwrap(),
            token_endpoint: Url::parse(token).unwrap(),
            jwks_uri: Url::parse("https://idp.example/k").unwrap(),
        };
        let check = |issuer, token| description(issuer, token).check("https://idp.example");
        assert_eq!(
            check("https://idp.example", "https://idp.example/t"),
            Ok(())
        );
        assert!(check("https://evil.example", "https://idp.example/t").is_err());
        assert!(check("https://idp.example", "http://idp.example/t").is_err());
    }

    #[test]
    fn an_error_of_the_provider_is_a_word_or_not_shown() {
        assert_eq!(error_of(br#"{"error":"invalid_grant"}"#), ": invalid_grant");
        assert_eq!(error_of(br#"{"error":"a b"}"#), "");
        assert_eq!(error_of(b"<html>"), "");
    }
}
