//! Hashes whose parts are in columns of a database: algorithm by configuration, hash and salt as
//! texts.

use aws_lc_rs::digest::{self, Context, SHA256, SHA512};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HashError, is_same, pbkdf};

/// The scheme of a database's hashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Scheme {
    /// Algorithm of the column with the hash: `"auto"` (the hash names it: `$argon2id$…`, `$2b$…`,
    /// `$pbkdf2-…`, Mosquitto's `$6$` and `$7$`), `"plain"`, `"sha256"`, `"sha512"`,
    /// `"pbkdf2-sha1"`, `"pbkdf2-sha256"` or `"pbkdf2-sha512"`; the last six in hexadecimal.
    /// Default `"auto"`: strong hashes name their algorithm.
    pub algorithm: Algorithm,
    /// Position of the salt when password and salt are hashed as one text: `"prefix"`, `"suffix"`
    /// or `"none"`. Has no effect for `"auto"` and PBKDF2. Default `"prefix"`, as EMQX.
    pub salt_position: SaltPosition,
    /// Iterations of PBKDF2, 1 to 10,000,000. Default `4096`, as EMQX before 6.0.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub iterations: u32,
}

impl Default for Scheme {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Auto,
            salt_position: SaltPosition::Prefix,
            iterations: 4096,
        }
    }
}

/// Algorithm of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Algorithm {
    /// The hash names it.
    #[default]
    Auto,
    /// The password itself.
    Plain,
    /// SHA-256 of password and salt.
    Sha256,
    /// SHA-512 of password and salt.
    Sha512,
    /// PBKDF2 with HMAC-SHA-1.
    Pbkdf2Sha1,
    /// PBKDF2 with HMAC-SHA-256.
    Pbkdf2Sha256,
    /// PBKDF2 with HMAC-SHA-512.
    Pbkdf2Sha512,
}

/// Position of the salt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SaltPosition {
    /// Before the password.
    #[default]
    Prefix,
    /// After the password.
    Suffix,
    /// Nowhere.
    None,
}

impl Scheme {
    /// One text of hash and salt, for [`verify`](super::verify).
    ///
    /// # Errors
    /// The hash is no hexadecimal number.
    pub fn stored(&self, hash: &str, salt: &str) -> Result<String, HashError> {
        let position = match self.salt_position {
            SaltPosition::Prefix => "prefix",
            SaltPosition::Suffix => "suffix",
            SaltPosition::None => "none",
        };
        let salted = |name: &str, hash: &[u8]| {
            let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
            format!("$salted-{name}${position}${salt}${hash}")
        };
        let derived = |mac: &str| {
            let hash = hexadecimal(hash)?;
            Ok(pbkdf::format(mac, self.iterations, salt.as_bytes(), &hash))
        };
        match self.algorithm {
            Algorithm::Auto => Ok(hash.to_owned()),
            Algorithm::Plain => Ok(salted("plain", hash.as_bytes())),
            Algorithm::Sha256 => Ok(salted("sha256", &hexadecimal(hash)?)),
            Algorithm::Sha512 => Ok(salted("sha512", &hexadecimal(hash)?)),
            Algorithm::Pbkdf2Sha1 => derived("sha1"),
            Algorithm::Pbkdf2Sha256 => derived("sha256"),
            Algorithm::Pbkdf2Sha512 => derived("sha512"),
        }
    }
}

/// Verifies `$salted-sha256$prefix$salt$hash`.
pub(super) fn verify(stored: &str, password: &[u8]) -> Result<bool, HashError> {
    let parts = parse(stored)?;
    let Some(algorithm) = parts.algorithm else {
        // Hashed, so that even the length is not revealed.
        let hash = |text: &[u8]| digest::digest(&SHA256, text);
        return Ok(is_same(hash(password).as_ref(), hash(&parts.hash).as_ref()));
    };
    let mut context = Context::new(algorithm);
    if parts.position == "prefix" {
        context.update(&parts.salt);
    }
    context.update(password);
    if parts.position == "suffix" {
        context.update(&parts.salt);
    }
    Ok(is_same(context.finish().as_ref(), &parts.hash))
}

pub(super) fn check(stored: &str) -> Result<(), HashError> {
    parse(stored).map(drop)
}

struct Parts<'a> {
    /// None for a password that is not a hash.
    algorithm: Option<&'static digest::Algorithm>,
    position: &'a str,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

fn parse(stored: &str) -> Result<Parts<'_>, HashError> {
    let mut parts = stored.split('$').skip(1);
    let (Some(scheme), Some(position), Some(salt), Some(hash), None) = (
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
    ) else {
        return Err(HashError::Malformed(
            "expected $salted-sha256$position$salt$hash",
        ));
    };
    let algorithm = match scheme {
        "salted-plain" => None,
        "salted-sha256" => Some(&SHA256),
        "salted-sha512" => Some(&SHA512),
        _ => return Err(HashError::Unknown),
    };
    if !matches!(position, "prefix" | "suffix" | "none") {
        return Err(HashError::Malformed(
            "position of the salt: expected prefix, suffix or none",
        ));
    }
    let hash = bytes(hash)?;
    if algorithm.is_some_and(|algorithm| algorithm.output_len() != hash.len()) {
        return Err(HashError::Malformed("length of the hash"));
    }
    Ok(Parts {
        algorithm,
        position,
        salt: bytes(salt)?,
        hash,
    })
}

fn bytes(text: &str) -> Result<Vec<u8>, HashError> {
    STANDARD_NO_PAD
        .decode(text)
        .map_err(|_| HashError::Malformed("not Base64"))
}

fn hexadecimal(text: &str) -> Result<Vec<u8>, HashError> {
    let digits = text.as_bytes();
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => {
            let (high, low) = (
                char::from(*high).to_digit(16)?,
                char::from(*low).to_digit(16)?,
            );
            u8::try_from(high << 4 | low).ok()
        }
        _ => None,
    });
    let bytes: Option<Vec<u8>> = pairs.collect();
    bytes.ok_or(HashError::Malformed("not hexadecimal"))
}
