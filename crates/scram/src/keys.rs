//! The keys that both sides derive from a password, and their cryptography.

use std::num::NonZeroU32;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use aws_lc_rs::pbkdf2;
use zeroize::Zeroizing;

/// Bytes of a SHA-256.
pub(crate) const HASH_BYTES: usize = 32;

/// A SHA-256, or a key of as many bytes.
pub(crate) type Hash = [u8; HASH_BYTES];

/// `ClientKey` and `ServerKey` of RFC 5802.
pub(crate) struct Keys {
    /// Proves the client's knowledge; the server stores its hash only.
    pub(crate) client: Zeroizing<Hash>,
    /// Proves the server's.
    pub(crate) server: Hash,
}

impl Keys {
    /// Derives them from a prepared password.
    pub(crate) fn derive(password: &str, salt: &[u8], iterations: NonZeroU32) -> Self {
        let mut salted = Zeroizing::new(Hash::default());
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            iterations,
            salt,
            password.as_bytes(),
            salted.as_mut_slice(),
        );
        Self {
            client: Zeroizing::new(keyed(salted.as_slice(), b"Client Key")),
            server: keyed(salted.as_slice(), b"Server Key"),
        }
    }
}

/// A name or password in the form that is compared (RFC 4013, `SASLprep`); none if it has
/// characters that this forbids.
pub(crate) fn prepared(text: &str) -> Option<String> {
    let prepared = stringprep::saslprep(text).ok()?;
    Some(prepared.into_owned())
}

/// HMAC-SHA-256.
pub(crate) fn keyed(key: &[u8], message: &[u8]) -> Hash {
    let tag = hmac::sign(&hmac::Key::new(HMAC_SHA256, key), message);
    let mut bytes = Hash::default();
    bytes.copy_from_slice(tag.as_ref());
    bytes
}

/// SHA-256.
pub(crate) fn hash(message: &[u8]) -> Hash {
    let mut bytes = Hash::default();
    bytes.copy_from_slice(digest(&SHA256, message).as_ref());
    bytes
}

/// The bytes of one combined with those of the other: a key and a signature make a proof, a proof
/// and a signature the key.
pub(crate) fn combined(mut one: Hash, other: &Hash) -> Hash {
    for (byte, with) in one.iter_mut().zip(other) {
        *byte ^= with;
    }
    one
}

/// Compares in constant time.
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    verify_slices_are_equal(one, other).is_ok()
}
