//! The server's stored credential of a password.

use std::fmt;
use std::num::NonZeroU32;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{self, HMAC_SHA256, Key};
use aws_lc_rs::{pbkdf2, rand};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Bytes of a SHA-256.
pub(super) const HASH_BYTES: usize = 32;
/// Iterations of a new credential: four times the minimum of RFC 7677, still under a second on a
/// small device.
const ITERATIONS: u32 = 16_384;
/// Bytes of a new salt.
const SALT_BYTES: usize = 16;
/// Fewest accepted iterations, the minimum of RFC 7677.
const ITERATIONS_MIN: u32 = 4096;
/// Most iterations that are accepted: a client that has to compute more gives up.
const ITERATIONS_MAX: u32 = 10_000_000;
/// Most bytes of a salt that are accepted.
const SALT_BYTES_MAX: usize = 128;

/// A credential: `StoredKey` and `ServerKey` of RFC 5802. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    pub(super) salt: Vec<u8>,
    pub(super) iterations: u32,
    pub(super) stored_key: [u8; HASH_BYTES],
    pub(super) server_key: [u8; HASH_BYTES],
}

impl Credential {
    /// Makes one with a random salt and [`ITERATIONS`]; about 10 ms.
    ///
    /// # Errors
    /// The password has characters that `SASLprep` forbids, or the system provides no random
    /// numbers.
    pub fn of(password: &str) -> Result<Self, String> {
        let mut salt = [0; SALT_BYTES];
        rand::fill(&mut salt).map_err(|_| "no random numbers for a salt")?;
        Self::derive(password, &salt, ITERATIONS)
    }

    /// Makes one with this salt.
    pub(super) fn derive(password: &str, salt: &[u8], iterations: u32) -> Result<Self, String> {
        let prepared = stringprep::saslprep(password);
        let prepared = prepared.map_err(|_| "the password has characters that SCRAM forbids")?;
        let prepared = Zeroizing::new(prepared.into_owned());
        let count = NonZeroU32::new(iterations).ok_or("0 iterations")?;
        let mut salted = Zeroizing::new([0; HASH_BYTES]);
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            count,
            salt,
            prepared.as_bytes(),
            salted.as_mut_slice(),
        );
        let client_key = Zeroizing::new(keyed(salted.as_slice(), b"Client Key"));
        Ok(Self {
            salt: salt.to_vec(),
            iterations,
            stored_key: hash(client_key.as_slice()),
            server_key: keyed(salted.as_slice(), b"Server Key"),
        })
    }

    /// Credentials of unknown users, from the secret of this one.
    pub(crate) fn decoys(&self) -> Decoys {
        Decoys::new(&self.server_key)
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credential(***)")
    }
}

/// HMAC-SHA-256.
pub(super) fn keyed(key: &[u8], message: &[u8]) -> [u8; HASH_BYTES] {
    let tag = hmac::sign(&Key::new(HMAC_SHA256, key), message);
    let mut bytes = [0; HASH_BYTES];
    bytes.copy_from_slice(tag.as_ref());
    bytes
}

/// SHA-256.
pub(super) fn hash(message: &[u8]) -> [u8; HASH_BYTES] {
    let mut bytes = [0; HASH_BYTES];
    bytes.copy_from_slice(digest(&SHA256, message).as_ref());
    bytes
}

/// Credentials of users that do not exist: the same for a name each time, and without a password.
pub(crate) struct Decoys([u8; HASH_BYTES]);

impl Decoys {
    /// Derives them from a secret that lives as long as the store: the salts for an unknown name
    /// must not change when the broker restarts.
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(keyed(secret, b"thrum: salts of nobody"))
    }

    /// The credential of a name.
    pub(crate) fn credential(&self, username: &str) -> Credential {
        let part = |purpose: &str| {
            let message = [purpose.as_bytes(), b"\0", username.as_bytes()].concat();
            keyed(&self.0, &message)
        };
        Credential {
            salt: part("salt")[..SALT_BYTES].to_vec(),
            iterations: ITERATIONS,
            stored_key: part("stored key"),
            server_key: part("server key"),
        }
    }
}

impl fmt::Debug for Decoys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Decoys")
    }
}

/// A credential in a file, its bytes in Base64.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CredentialRecord {
    salt: String,
    iterations: u32,
    stored_key: String,
    server_key: String,
}

impl From<&Credential> for CredentialRecord {
    fn from(credential: &Credential) -> Self {
        Self {
            salt: STANDARD.encode(&credential.salt),
            iterations: credential.iterations,
            stored_key: STANDARD.encode(credential.stored_key),
            server_key: STANDARD.encode(credential.server_key),
        }
    }
}

impl TryFrom<CredentialRecord> for Credential {
    type Error = String;

    fn try_from(record: CredentialRecord) -> Result<Self, String> {
        let bytes = |text: &str| STANDARD.decode(text).map_err(|_| "scram: not Base64");
        let key = |text: &str| {
            let key = bytes(text)?.try_into();
            key.map_err(|_| "scram: a key has 32 bytes")
        };
        let salt = bytes(&record.salt)?;
        if salt.is_empty() || salt.len() > SALT_BYTES_MAX {
            return Err(format!("scram: a salt has 1 to {SALT_BYTES_MAX} bytes"));
        }
        if !(ITERATIONS_MIN..=ITERATIONS_MAX).contains(&record.iterations) {
            return Err(format!(
                "scram: iterations from {ITERATIONS_MIN} to {ITERATIONS_MAX}"
            ));
        }
        Ok(Self {
            salt,
            iterations: record.iterations,
            stored_key: key(&record.stored_key)?,
            server_key: key(&record.server_key)?,
        })
    }
}
