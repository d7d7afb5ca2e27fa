//! PBKDF2 in the form of PHC (`$pbkdf2-sha256$i=600000,l=32$salt$hash`) and of passlib
//! (`$pbkdf2-sha256$29000$salt$hash`).

use std::num::NonZeroU32;

use aws_lc_rs::pbkdf2::{
    Algorithm, PBKDF2_HMAC_SHA1, PBKDF2_HMAC_SHA256, PBKDF2_HMAC_SHA512, derive,
};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::{HashError, is_same};

/// Most accepted iterations of a stored hash: seconds of work.
const ITERATIONS_MAX: u32 = 10_000_000;
/// Fewest and most bytes of a derived key: fewer could be guessed.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 16..=128;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

struct Parts {
    algorithm: Algorithm,
    iterations: u32,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

pub(super) fn verify(stored: &str, password: &[u8]) -> Result<bool, HashError> {
    let parts = parse(stored)?;
    matches(
        parts.algorithm,
        parts.iterations,
        &parts.salt,
        password,
        &parts.hash,
    )
}

pub(super) fn check(stored: &str) -> Result<(), HashError> {
    parse(stored).map(drop)
}

/// One text of the separate columns of other systems.
pub(super) fn format(mac: &str, iterations: u32, salt: &[u8], hash: &[u8]) -> String {
    let (salt, hash) = (BASE64.encode(salt), BASE64.encode(hash));
    format!("$pbkdf2-{mac}$i={iterations}${salt}${hash}")
}

/// Whether the password has this derived key.
pub(super) fn matches(
    algorithm: Algorithm,
    iterations: u32,
    salt: &[u8],
    password: &[u8],
    hash: &[u8],
) -> Result<bool, HashError> {
    check_iterations(iterations)?;
    let iterations = NonZeroU32::new(iterations).ok_or(HashError::Malformed("iterations"))?;
    let mut derived = vec![0; hash.len()];
    derive(algorithm, iterations, salt, password, &mut derived);
    Ok(is_same(&derived, hash))
}

pub(super) fn check_iterations(iterations: u32) -> Result<(), HashError> {
    match iterations {
        0 => Err(HashError::Malformed("iterations")),
        1..=ITERATIONS_MAX => Ok(()),
        _ => Err(HashError::Refused(
            "PBKDF2 with more than 10,000,000 iterations",
        )),
    }
}

fn parse(stored: &str) -> Result<Parts, HashError> {
    let mut parts = stored.split('$').skip(1);
    let (Some(scheme), Some(parameters), Some(salt), Some(hash), None) = (
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
    ) else {
        return Err(HashError::Malformed(
            "expected $pbkdf2-sha256$i=iterations$salt$hash",
        ));
    };
    let algorithm = match scheme {
        "pbkdf2" | "pbkdf2-sha1" => PBKDF2_HMAC_SHA1,
        "pbkdf2-sha256" => PBKDF2_HMAC_SHA256,
        "pbkdf2-sha512" => PBKDF2_HMAC_SHA512,
        _ => return Err(HashError::Unknown),
    };
    let iterations = parameters
        .split(',')
        .find_map(|parameter| match parameter.split_once('=') {
            None => parameter.parse().ok(),
            Some(("i", value)) => value.parse().ok(),
            Some(_) => None,
        })
        .ok_or(HashError::Malformed("iterations"))?;
    check_iterations(iterations)?;
    let hash = bytes(hash)?;
    if !KEY_BYTES.contains(&hash.len()) {
        return Err(HashError::Malformed("a derived key has 16 to 128 bytes"));
    }
    Ok(Parts {
        algorithm,
        iterations,
        salt: bytes(salt)?,
        hash,
    })
}

/// passlib writes a full stop where others write a plus sign.
fn bytes(text: &str) -> Result<Vec<u8>, HashError> {
    let decoded = BASE64.decode(text.replace('.', "+"));
    decoded.map_err(|_| HashError::Malformed("not Base64"))
}
