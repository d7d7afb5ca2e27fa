//! Random secrets, and what is kept of them.
//!
//! A password is hashed slowly because people choose it: whoever reads the file may try every
//! likely one. A secret of 128 or more random bits cannot be tried, so SHA-256 keeps it as well as
//! Argon2 would, and a flood of wrong secrets costs microseconds instead of a core.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use zeroize::Zeroizing;

use super::refusal::Refusal;

/// Fresh random bytes, overwritten when dropped.
///
/// # Errors
/// The system provides none.
pub(super) fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>, Refusal> {
    let mut bytes = Zeroizing::new([0; N]);
    match rand::fill(&mut *bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(Refusal::Broken(
            "the system provides no random numbers".to_owned(),
        )),
    }
}

/// SHA-256 of a secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Digest([u8; 32]);

impl Digest {
    /// That of a secret.
    pub(super) fn of(secret: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, secret).as_ref());
        Self(bytes)
    }

    /// Whether it is the digest of that secret, in a time that does not depend on the difference.
    pub(super) fn is_of(&self, secret: &[u8]) -> bool {
        verify_slices_are_equal(&self.0, &Self::of(secret).0).is_ok()
    }

    /// As 64 hexadecimal digits.
    pub(super) fn to_hex(self) -> String {
        hex(&self.0)
    }

    /// Reads 64 hexadecimal digits.
    pub(super) fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (byte, place) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(text.get(place..place + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// A name for what has that secret: 64 bits of the digest, which tell nothing about the secret.
    pub(super) fn name(self) -> String {
        hex(&self.0[..8])
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Digest(***)")
    }
}

/// Whether two texts are equal, in a time that depends on their lengths only.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    verify_slices_are_equal(one.as_bytes(), other.as_bytes()).is_ok()
}

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // A string takes everything.
        write!(text, "{byte:02x}").unwrap_or_default();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_written_and_knows_its_secret_only() {
        let digest = Digest::of(b"secret");
        let text = digest.to_hex();
        assert!(
            text.starts_with("2bb80d537b1da3e38bd30361aa855686"),
            "{text}"
        );
        assert_eq!(Digest::from_hex(&text), Some(digest));
        assert!(digest.is_of(b"secret") && !digest.is_of(b"secrets") && !digest.is_of(b""));
        for wrong in [
            "",
            &text[1..],
            &format!("{text}0"),
            &"+".repeat(64),
            &"\u{fc}".repeat(32),
        ] {
            assert_eq!(Digest::from_hex(wrong), None, "{wrong}");
        }
        assert_eq!(digest.name(), text[..16]);
        assert_eq!(format!("{digest:?}"), "Digest(***)");
    }

    #[test]
    fn random_bytes_differ() {
        let (one, other) = (random::<16>().unwrap(), random::<16>().unwrap());
        assert_ne!(*one, *other);
    }
}
