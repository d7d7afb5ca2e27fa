//! The server's stored credential of a password.

use std::fmt;
use std::num::NonZeroU32;

use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::keys::{HASH_BYTES, Keys, hash, is_same, keyed, prepared};
use super::{ITERATIONS_MAX, ITERATIONS_MIN};

/// Iterations of a new credential: four times the minimum of RFC 7677, still under a second on a
/// small device.
const ITERATIONS: u32 = 16_384;
/// Bytes of a new salt.
const SALT_BYTES: usize = 16;
/// Most bytes of a salt that are accepted.
const SALT_BYTES_MAX: usize = 128;

/// A credential: `StoredKey` and `ServerKey` of RFC 5802. Never printed.
#[derive(Clone)]
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
        let prepared = prepared(password);
        let prepared = prepared.ok_or("the password has characters that SCRAM forbids")?;
        let prepared = Zeroizing::new(prepared);
        let count = NonZeroU32::new(iterations).ok_or("0 iterations")?;
        let keys = Keys::derive(&prepared, salt, count);
        Ok(Self {
            salt: salt.to_vec(),
            iterations,
            stored_key: hash(keys.client.as_slice()),
            server_key: keys.server,
        })
    }

    /// Credentials of unknown users, from the secret of this one.
    pub fn decoys(&self) -> Decoys {
        Decoys::new(&self.server_key)
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credential(***)")
    }
}

/// The keys are compared in constant time.
impl PartialEq for Credential {
    fn eq(&self, other: &Self) -> bool {
        let is_same_client = is_same(&self.stored_key, &other.stored_key);
        let is_same_server = is_same(&self.server_key, &other.server_key);
        let is_same_salt = self.salt == other.salt && self.iterations == other.iterations;
        is_same_client & is_same_server & is_same_salt
    }
}

impl Eq for Credential {}

/// Credentials of users that do not exist: the same for a name each time, and without a password.
pub struct Decoys([u8; HASH_BYTES]);

impl Decoys {
    /// Derives them from a secret that lives as long as the store: the salts for an unknown name
    /// must not change when the broker restarts.
    pub fn new(secret: &[u8]) -> Self {
        Self(keyed(secret, b"thrum: salts of nobody"))
    }

    /// The credential of a name.
    pub fn credential(&self, username: &str) -> Credential {
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
pub struct CredentialRecord {
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
