//! An issuer of tokens: its keys, its key set and its signatures.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// A key of an issuer.
#[derive(Debug)]
pub struct Issuer {
    key: EcdsaKeyPair,
    key_id: &'static str,
}

impl Issuer {
    /// Makes a key of this name.
    ///
    /// # Panics
    /// There are no random numbers.
    pub fn new(key_id: &'static str) -> Self {
        let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        Self { key, key_id }
    }

    /// The key set, as an issuer publishes it.
    pub fn key_set(&self) -> String {
        let point = self.key.public_key().as_ref();
        // One byte marks that both coordinates follow.
        let (x, y) = point[1..].split_at(32);
        let [x, y] = [x, y].map(|coordinate| URL_SAFE_NO_PAD.encode(coordinate));
        let key = json!({ "kty": "EC", "crv": "P-256", "use": "sig", "kid": self.key_id, "x": x, "y": y });
        json!({ "keys": [key] }).to_string()
    }

    /// A token with these claims.
    ///
    /// # Panics
    /// There are no random numbers.
    pub fn sign(&self, claims: &Value) -> String {
        let header = json!({ "alg": "ES256", "typ": "JWT", "kid": self.key_id });
        let [header, claims] =
            [&header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature.expect("random numbers"));
        format!("{signed}.{signature}")
    }
}
