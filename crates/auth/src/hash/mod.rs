//! Password hashes: thrum's own, and those of other programs.
//!
//! A stored hash is one text that names its scheme. A database that keeps hash and salt in two
//! columns has a [`Scheme`] in the configuration instead, and [`Scheme::stored`] makes one text of
//! both.

mod argon;
mod blocks;
mod hasher;
mod mosquitto;
mod pbkdf;
mod queue;
mod salted;
mod verified;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use thiserror::Error;

pub use argon::create;
pub use salted::{Algorithm, SaltPosition, Scheme};

pub(crate) use hasher::Hasher;
pub(crate) use queue::Requester;
pub(crate) use verified::Verified;

/// Highest accepted cost of bcrypt: one step more is twice the time, and 15 takes seconds.
const BCRYPT_COST_MAX: u32 = 14;

/// Why a stored hash cannot be used. Texts contain no part of it.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum HashError {
    /// An unknown scheme.
    #[error(
        "no known password hash: expected $argon2id$, $2b$, $pbkdf2-sha256$, $pbkdf2-sha512$, $7$, $6$ (Mosquitto), \
         or $salted-sha256$"
    )]
    Unknown,
    /// A known scheme with damaged contents.
    #[error("damaged password hash: {0}")]
    Malformed(&'static str),
    /// It can be read and is not accepted.
    #[error("password hash not accepted: {0}")]
    Refused(&'static str),
}

/// Verifies a password against a stored hash.
///
/// Takes the time that the hash was made for, 20 ms or more: see [`Hasher`] for how to wait for it.
///
/// # Errors
/// The hash is unknown, damaged or too costly.
pub fn verify(stored: &str, password: &[u8]) -> Result<bool, HashError> {
    let scheme = scheme(stored)?;
    match scheme {
        "argon2id" | "argon2i" | "argon2d" => argon::verify(stored, password),
        "2a" | "2b" | "2y" => bcrypt(stored, password),
        "6" => mosquitto::verify_sha512(stored, password),
        "7" => mosquitto::verify_pbkdf2(stored, password),
        _ if scheme.starts_with("pbkdf2") => pbkdf::verify(stored, password),
        _ if scheme.starts_with("salted-") => salted::verify(stored, password),
        _ => Err(HashError::Unknown),
    }
}

/// Whether a stored hash can be verified at all, without the time it takes.
///
/// # Errors
/// As [`verify`].
pub fn check(stored: &str) -> Result<(), HashError> {
    let scheme = scheme(stored)?;
    match scheme {
        "argon2id" | "argon2i" | "argon2d" => argon::check(stored),
        "2a" | "2b" | "2y" => bcrypt_check(stored),
        "6" => mosquitto::check_sha512(stored),
        "7" => mosquitto::check_pbkdf2(stored),
        _ if scheme.starts_with("pbkdf2") => pbkdf::check(stored),
        _ if scheme.starts_with("salted-") => salted::check(stored),
        _ => Err(HashError::Unknown),
    }
}

/// Whether two secrets are equal, in a time that does not depend on where they differ.
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    verify_slices_are_equal(one, other).is_ok()
}

/// The text between the first two dollar signs.
fn scheme(stored: &str) -> Result<&str, HashError> {
    let rest = stored.strip_prefix('$').ok_or(HashError::Unknown)?;
    rest.split('$').next().ok_or(HashError::Unknown)
}

/// bcrypt uses the first 72 bytes of a password; so did the program that made the hash.
fn bcrypt(stored: &str, password: &[u8]) -> Result<bool, HashError> {
    bcrypt_check(stored)?;
    bcrypt::verify(password, stored).map_err(|_| HashError::Malformed("bcrypt"))
}

fn bcrypt_check(stored: &str) -> Result<(), HashError> {
    let parts: bcrypt::HashParts = stored.parse().map_err(|_| HashError::Malformed("bcrypt"))?;
    if parts.get_cost() > BCRYPT_COST_MAX {
        return Err(HashError::Refused("bcrypt with a cost above 14"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
