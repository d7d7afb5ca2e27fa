//! What ties a login at the provider to the browser that began it.
//!
//! The browser keeps one random secret in a cookie; state, nonce and the verifier of PKCE are three
//! digests of it. So the broker keeps nothing, a flood of begun logins costs no memory, and a code
//! and state that somebody else began are worth nothing in another browser.

use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256, digest};
use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

use super::super::cookie::{COOKIES_MAX, SECRET_BYTES, secret_of, values};
use super::super::digest::is_same;

/// Name of the cookie over plain HTTP.
const NAME: &str = "thrum_oidc";
/// Name of the cookie over TLS: see the cookie of a session.
const NAME_TLS: &str = "__Host-thrum_oidc";

/// The secret of a begun login.
pub(in crate::login) struct Proof(Zeroizing<[u8; SECRET_BYTES]>);

impl Proof {
    /// Of random bytes.
    pub(super) const fn new(bytes: Zeroizing<[u8; SECRET_BYTES]>) -> Self {
        Self(bytes)
    }

    fn parse(text: &str) -> Option<Self> {
        secret_of(text).map(Self)
    }

    /// What the provider hands back with the code.
    pub(super) fn state(&self) -> String {
        self.derived("state")
    }

    /// Whether it is that.
    pub(super) fn is_state(&self, text: &str) -> bool {
        is_same(&self.state(), text)
    }

    /// What the provider writes into the token.
    pub(super) fn nonce(&self) -> String {
        self.derived("nonce")
    }

    /// What only this browser can bring for the code: RFC 7636.
    pub(super) fn verifier(&self) -> Zeroizing<String> {
        Zeroizing::new(self.derived("verifier"))
    }

    /// The digest of the verifier, which the provider is given first.
    pub(super) fn challenge(&self) -> String {
        let verifier = self.verifier();
        URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
    }

    /// `Set-Cookie`. `Lax`: the browser comes back from another site.
    pub(super) fn cookie(&self, is_tls: bool, life: Duration) -> String {
        let value = Zeroizing::new(URL_SAFE_NO_PAD.encode(*self.0));
        let secs = life.as_secs();
        format!(
            "{}={}; Max-Age={secs}{}",
            name(is_tls),
            *value,
            attributes(is_tls)
        )
    }

    fn derived(&self, purpose: &str) -> String {
        let mut context = Context::new(&SHA256);
        context.update(purpose.as_bytes());
        context.update(b" of a login\0");
        context.update(&*self.0);
        URL_SAFE_NO_PAD.encode(context.finish())
    }
}

/// The begun logins of a browser.
pub(in crate::login) fn proofs(headers: &HeaderMap, is_tls: bool) -> impl Iterator<Item = Proof> {
    let values = values(headers, name(is_tls));
    values.take(COOKIES_MAX).filter_map(Proof::parse)
}

/// `Set-Cookie` that removes it.
pub(in crate::login) fn remove_cookie(is_tls: bool) -> String {
    format!("{}=; Max-Age=0{}", name(is_tls), attributes(is_tls))
}

const fn name(is_tls: bool) -> &'static str {
    if is_tls { NAME_TLS } else { NAME }
}

const fn attributes(is_tls: bool) -> &'static str {
    if is_tls {
        "; Path=/; HttpOnly; SameSite=Lax; Secure"
    } else {
        "; Path=/; HttpOnly; SameSite=Lax"
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use axum::http::header::COOKIE;

    use super::*;

    #[test]
    fn state_nonce_and_verifier_differ_and_come_back_with_the_cookie() {
        let proof = Proof::new(Zeroizing::new([5; SECRET_BYTES]));
        let texts = [
            proof.state(),
            proof.nonce(),
            proof.verifier().to_string(),
            proof.challenge(),
        ];
        for (place, text) in texts.iter().enumerate() {
            assert_eq!(text.len(), 43, "RFC 7636 asks for 43 to 128 characters");
            assert!(!texts[..place].contains(text));
        }
        let cookie = proof.cookie(true, Duration::from_mins(15));
        assert!(cookie.starts_with("__Host-thrum_oidc=BQUF"), "{cookie}");
        assert!(cookie.ends_with("; Max-Age=900; Path=/; HttpOnly; SameSite=Lax; Secure"));
        let mut headers = HeaderMap::new();
        let sent = cookie.split(';').next().unwrap();
        headers.insert(COOKIE, HeaderValue::from_str(sent).unwrap());
        let found: Vec<Proof> = proofs(&headers, true).collect();
        assert!(found.len() == 1 && found[0].is_state(&proof.state()));
        assert!(!found[0].is_state(&proof.nonce()) && !found[0].is_state(""));
        assert_eq!(proofs(&headers, false).count(), 0);
    }

    #[test]
    fn the_challenge_is_that_of_rfc_7636() {
        // Appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        assert_eq!(challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
