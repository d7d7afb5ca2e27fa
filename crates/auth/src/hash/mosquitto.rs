//! The two schemes of `mosquitto_passwd`. They look like crypt(3)'s and are not: salt and hash are
//! Base64.

use aws_lc_rs::digest::{Context, SHA512};
use aws_lc_rs::pbkdf2::PBKDF2_HMAC_SHA512;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{HashError, is_same, pbkdf};

/// Bytes of a SHA-512.
const HASH_BYTES: usize = 64;

/// Verifies `$6$salt$hash`: SHA-512 of password and salt.
pub(super) fn verify_sha512(stored: &str, password: &[u8]) -> Result<bool, HashError> {
    let (salt, hash) = sha512_parts(stored)?;
    let mut context = Context::new(&SHA512);
    context.update(password);
    context.update(&salt);
    Ok(is_same(context.finish().as_ref(), &hash))
}

pub(super) fn check_sha512(stored: &str) -> Result<(), HashError> {
    sha512_parts(stored).map(drop)
}

/// Verifies `$7$iterations$salt$hash`: PBKDF2 with HMAC-SHA-512.
pub(super) fn verify_pbkdf2(stored: &str, password: &[u8]) -> Result<bool, HashError> {
    let (iterations, salt, hash) = pbkdf2_parts(stored)?;
    pbkdf::matches(PBKDF2_HMAC_SHA512, iterations, &salt, password, &hash)
}

pub(super) fn check_pbkdf2(stored: &str) -> Result<(), HashError> {
    pbkdf2_parts(stored).map(drop)
}

fn sha512_parts(stored: &str) -> Result<(Vec<u8>, Vec<u8>), HashError> {
    let mut parts = stored.split('$').skip(2);
    let (Some(salt), Some(hash), None) = (parts.next(), parts.next(), parts.next()) else {
        return Err(HashError::Malformed("expected $6$salt$hash"));
    };
    Ok((bytes(salt)?, hash_bytes(hash)?))
}

fn pbkdf2_parts(stored: &str) -> Result<(u32, Vec<u8>, Vec<u8>), HashError> {
    let mut parts = stored.split('$').skip(2);
    let (Some(iterations), Some(salt), Some(hash), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(HashError::Malformed("expected $7$iterations$salt$hash"));
    };
    let iterations = iterations
        .parse()
        .map_err(|_| HashError::Malformed("iterations"))?;
    pbkdf::check_iterations(iterations)?;
    Ok((iterations, bytes(salt)?, hash_bytes(hash)?))
}

fn bytes(text: &str) -> Result<Vec<u8>, HashError> {
    STANDARD.decode(text).map_err(|_| {
        HashError::Malformed("not the Base64 of mosquitto_passwd; crypt(3) hashes are not known")
    })
}

fn hash_bytes(text: &str) -> Result<Vec<u8>, HashError> {
    let hash = bytes(text)?;
    if hash.len() == HASH_BYTES {
        Ok(hash)
    } else {
        Err(HashError::Malformed("a hash has 64 bytes"))
    }
}
