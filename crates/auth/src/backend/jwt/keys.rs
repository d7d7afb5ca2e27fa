//! Keys that verify signatures, each with the algorithms that may be used with it.

use std::fmt;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, Header, Validation, decode, decode_header,
};
use serde_json::{Map, Value};

/// Most keys of a set: a token without key identifier is tried with each.
const KEYS_MAX: usize = 64;
/// Fewest bytes of a secret: as many as the shortest hash has.
const SECRET_BYTES_MIN: usize = 32;
/// Accepted with a secret if nothing is configured.
const SECRET_DEFAULT: [Algorithm; 1] = [Algorithm::HS256];
/// Accepted with public keys if nothing is configured.
const PUBLIC_DEFAULT: [Algorithm; 3] = [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];

/// Keys of one issuer.
#[derive(Debug, Default)]
pub struct Keys(Vec<Key>);

struct Key {
    id: Option<String>,
    /// Of the key's own family only, and allowed by the configuration.
    validation: Validation,
    decoding: DecodingKey,
}

/// The result of checking a token's signature.
#[derive(Debug)]
pub enum Signature {
    /// Signed with a known key.
    Good(Map<String, Value>),
    /// It names a known key and is signed with another one.
    Bad(&'static str),
    /// It names an unknown key or algorithm.
    UnknownKey,
    /// Not a token.
    None,
}

/// Reads the names of algorithms.
pub(super) fn algorithms(names: &[String]) -> Result<Vec<Algorithm>, String> {
    let parse = |name: &String| {
        let algorithm = name.parse();
        algorithm.map_err(|_| format!("no algorithm is called {name:?}, such as RS256"))
    };
    names.iter().map(parse).collect()
}

impl Keys {
    /// A secret that signs and verifies.
    pub(super) fn of_secret(secret: &[u8], allowed: &[Algorithm]) -> Result<Self, String> {
        if secret.len() < SECRET_BYTES_MIN {
            return Err(format!("a secret has at least {SECRET_BYTES_MIN} bytes"));
        }
        let allowed = if allowed.is_empty() {
            &SECRET_DEFAULT
        } else {
            allowed
        };
        let key = Key::new(None, DecodingKey::from_secret(secret), allowed);
        key.map(|key| Self(vec![key]))
            .ok_or_else(|| "a secret is for HS256, HS384 or HS512".to_owned())
    }

    /// A public key in PEM.
    pub(super) fn of_pem(pem: &[u8], allowed: &[Algorithm]) -> Result<Self, String> {
        let decoding = DecodingKey::from_rsa_pem(pem)
            .or_else(|_| DecodingKey::from_ec_pem(pem))
            .or_else(|_| DecodingKey::from_ed_pem(pem));
        let decoding = decoding.map_err(|_| {
            "no PEM of a public key (BEGIN PUBLIC KEY) for RSA, ECDSA or Ed25519".to_owned()
        })?;
        let key = Key::new(None, decoding, public(allowed));
        key.map(|key| Self(vec![key]))
            .ok_or_else(|| "none of the algorithms is for this key".to_owned())
    }

    /// A key set (JWKS). Unusable keys are skipped: sets contain keys for other purposes. Without
    /// algorithms they are `RS256`, `ES256` and `EdDSA`, whichever a key is for.
    ///
    /// # Errors
    /// It is no key set, or has too many keys.
    pub fn of_set(json: &[u8], allowed: &[Algorithm]) -> Result<Self, String> {
        let set: Value = serde_json::from_slice(json).map_err(|_| "not JSON")?;
        let Some(Value::Array(entries)) = set.get("keys") else {
            return Err("a key set has a list \"keys\"".to_owned());
        };
        if entries.len() > KEYS_MAX {
            return Err(format!("a key set has up to {KEYS_MAX} keys"));
        }
        let jwks = entries.iter().filter_map(|entry| {
            let jwk: Jwk = serde_json::from_value(entry.clone()).ok()?;
            Key::of_jwk(&jwk, public(allowed))
        });
        Ok(Self(jwks.collect()))
    }

    /// Verifies the signature; no other part of the token.
    pub fn verify(&self, token: &str) -> Signature {
        let Ok(header) = decode_header(token) else {
            return Signature::None;
        };
        // Critical extensions are not supported.
        if header.crit.is_some() || header.extras.inner().contains_key("crit") {
            return Signature::Bad("the token has critical extensions");
        }
        let mut is_known = false;
        for key in self.0.iter().filter(|key| key.fits(&header)) {
            is_known = true;
            if let Ok(token) = decode::<Map<String, Value>>(token, &key.decoding, &key.validation) {
                return Signature::Good(token.claims);
            }
        }
        if is_known {
            Signature::Bad("wrong signature")
        } else {
            Signature::UnknownKey
        }
    }
}

impl Key {
    /// None if none of the algorithms is for the key.
    fn new(id: Option<String>, decoding: DecodingKey, allowed: &[Algorithm]) -> Option<Self> {
        let family = decoding.family();
        let fitting = allowed.iter().filter(|it| it.family() == family);
        let fitting: Vec<Algorithm> = fitting.copied().collect();
        let mut validation = Validation::new(*fitting.first()?);
        validation.algorithms = fitting;
        // Claims are verified with a time argument: see `claims.rs`.
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_aud = false;
        Some(Self {
            id,
            validation,
            decoding,
        })
    }

    fn of_jwk(jwk: &Jwk, allowed: &[Algorithm]) -> Option<Self> {
        let common = &jwk.common;
        let is_for_signatures = common
            .public_key_use
            .as_ref()
            .is_none_or(|it| *it == PublicKeyUse::Signature);
        let verifies = common
            .key_operations
            .as_ref()
            .is_none_or(|all| all.contains(&KeyOperations::Verify));
        if !is_for_signatures || !verifies {
            return None;
        }
        let own: Option<Algorithm> = match common.key_algorithm {
            Some(algorithm) => Some(algorithm.to_string().parse().ok()?),
            None => None,
        };
        let is_for_key = |algorithm: &Algorithm| {
            own.is_none_or(|own| own == *algorithm) && is_on_curve(jwk, *algorithm)
        };
        let allowed: Vec<Algorithm> = allowed.iter().copied().filter(is_for_key).collect();
        Self::new(
            common.key_id.clone(),
            DecodingKey::from_jwk(jwk).ok()?,
            &allowed,
        )
    }

    /// A key without identifier matches every token, and a token without identifier every key.
    fn fits(&self, header: &Header) -> bool {
        let is_named = match (&self.id, &header.kid) {
            (Some(id), Some(named)) => id == named,
            (None, _) | (_, None) => true,
        };
        is_named && self.validation.algorithms.contains(&header.alg)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Key({:?})", self.id)
    }
}

fn public(allowed: &[Algorithm]) -> &[Algorithm] {
    if allowed.is_empty() {
        &PUBLIC_DEFAULT
    } else {
        allowed
    }
}

/// ECDSA names a curve and a hash together.
fn is_on_curve(jwk: &Jwk, algorithm: Algorithm) -> bool {
    let AlgorithmParameters::EllipticCurve(parameters) = &jwk.algorithm else {
        return algorithm.family() != AlgorithmFamily::Ec;
    };
    match algorithm {
        Algorithm::ES256 => parameters.curve == EllipticCurve::P256,
        Algorithm::ES384 => parameters.curve == EllipticCurve::P384,
        _ => false,
    }
}
