//! Passwords as directories store them (RFC 2307): the name of the scheme in braces, then the hash.

use aws_lc_rs::digest::{self, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::hash::is_same;

/// The form of a stored password.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stored<'a> {
    /// In clear text or with a fast hash: compared at once.
    Compared(bool),
    /// A slow hash: argon2 or bcrypt.
    Slow(&'a str),
    /// An unknown scheme.
    Unknown,
}

/// Compares, or returns the hash to compare with.
pub(super) fn compare<'a>(stored: &'a [u8], password: &[u8]) -> Stored<'a> {
    let Some((scheme, hash)) = scheme(stored) else {
        return Stored::Compared(is_same(stored, password));
    };
    let (algorithm, is_salted) = match scheme.to_ascii_uppercase().as_str() {
        "SHA" => (&SHA1_FOR_LEGACY_USE_ONLY, false),
        "SSHA" => (&SHA1_FOR_LEGACY_USE_ONLY, true),
        "SHA256" => (&SHA256, false),
        "SSHA256" => (&SHA256, true),
        "SHA512" => (&SHA512, false),
        "SSHA512" => (&SHA512, true),
        "ARGON2" if hash.starts_with("$argon2") => return Stored::Slow(hash),
        "CRYPT" if hash.starts_with("$2") => return Stored::Slow(hash),
        "CLEARTEXT" => return Stored::Compared(is_same(hash.as_bytes(), password)),
        _ => return Stored::Unknown,
    };
    let Ok(hash) = STANDARD.decode(hash) else {
        return Stored::Unknown;
    };
    let Some((hash, salt)) = hash.split_at_checked(algorithm.output_len()) else {
        return Stored::Unknown;
    };
    if !is_salted && !salt.is_empty() {
        return Stored::Unknown;
    }
    let mut context = digest::Context::new(algorithm);
    context.update(password);
    context.update(salt);
    Stored::Compared(is_same(hash, context.finish().as_ref()))
}

/// `{scheme}hash`.
fn scheme(stored: &[u8]) -> Option<(&str, &str)> {
    std::str::from_utf8(stored)
        .ok()?
        .strip_prefix('{')?
        .split_once('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn salted(name: &str, algorithm: &'static digest::Algorithm, salt: &[u8]) -> String {
        let mut context = digest::Context::new(algorithm);
        context.update(b"secret");
        context.update(salt);
        let hash = [context.finish().as_ref(), salt].concat();
        format!("{{{name}}}{}", STANDARD.encode(hash))
    }

    #[test]
    fn every_scheme_tells_right_from_wrong() {
        for stored in [
            "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=".to_owned(),
            salted("SSHA", &SHA1_FOR_LEGACY_USE_ONLY, b"salt"),
            salted("sha256", &SHA256, b""),
            salted("SSHA256", &SHA256, b"12345678"),
            salted("SHA512", &SHA512, b""),
            salted("SSHA512", &SHA512, b"s"),
            "{CLEARTEXT}secret".to_owned(),
            "secret".to_owned(),
        ] {
            let compare = |password| compare(stored.as_bytes(), password);
            assert_eq!(compare(b"secret"), Stored::Compared(true), "{stored}");
            assert_eq!(compare(b"Secret"), Stored::Compared(false), "{stored}");
            assert_eq!(compare(b""), Stored::Compared(false), "{stored}");
        }
    }

    #[test]
    fn unknown_schemes_are_not_compared_as_text() {
        for stored in [
            "{MD5}secret",
            "{SSHA}short",
            "{SHA}####",
            "{X}",
            "{CRYPT}$6$salt$x",
        ] {
            assert_eq!(
                compare(stored.as_bytes(), stored.as_bytes()),
                Stored::Unknown,
                "{stored}"
            );
        }
        assert_eq!(compare(b"{CRYPT}$2b$04$x", b""), Stored::Slow("$2b$04$x"));
    }
}
