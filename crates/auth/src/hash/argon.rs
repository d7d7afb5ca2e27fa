//! Argon2: hashing and verifying passwords.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher as _, PasswordVerifier as _, Version};
use aws_lc_rs::rand;

use super::HashError;

/// Memory of one hash, in KiB: with [`PASSES`] and [`LANES`] the minimum that OWASP recommends.
const MEMORY_KIB: u32 = 19 * 1024;
/// Passes over the memory.
const PASSES: u32 = 2;
/// Lanes.
const LANES: u32 = 1;
/// Bytes of the salt.
const SALT_BYTES: usize = 16;

/// Most memory that a stored hash may ask for, in KiB.
const MEMORY_KIB_MAX: u32 = 256 * 1024;
/// Most passes that a stored hash may ask for.
const PASSES_MAX: u32 = 16;
/// Most lanes that a stored hash may ask for.
const LANES_MAX: u32 = 16;

/// Hashes a password with Argon2id and a random salt: 19 MiB, 2 passes, 1 lane; about 20 ms.
///
/// # Errors
/// The system provides no random numbers or no memory.
pub fn create(password: &[u8]) -> Result<String, HashError> {
    let mut salt = [0; SALT_BYTES];
    rand::fill(&mut salt).map_err(|_| HashError::Refused("no random numbers for a salt"))?;
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None);
    let params = params.map_err(|_| HashError::Refused("Argon2 parameters"))?;
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let hash = argon.hash_password_with_salt(password, &salt);
    hash.map(|hash| hash.to_string())
        .map_err(|_| HashError::Refused("no memory for Argon2"))
}

/// Verifies `$argon2id$v=19$m=19456,t=2,p=1$salt$hash`.
pub(super) fn verify(stored: &str, password: &[u8]) -> Result<bool, HashError> {
    let hash = parse(stored)?;
    Ok(Argon2::default().verify_password(password, &hash).is_ok())
}

pub(super) fn check(stored: &str) -> Result<(), HashError> {
    parse(stored).map(drop)
}

fn parse(stored: &str) -> Result<PasswordHash, HashError> {
    let malformed = || HashError::Malformed("Argon2");
    let hash = PasswordHash::new(stored).map_err(|_| malformed())?;
    if hash.salt.is_none() || hash.hash.is_none() {
        return Err(malformed());
    }
    let params = Params::try_from(&hash).map_err(|_| malformed())?;
    if params.m_cost() > MEMORY_KIB_MAX
        || params.t_cost() > PASSES_MAX
        || params.p_cost() > LANES_MAX
    {
        return Err(HashError::Refused(
            "Argon2 with more than 256 MiB, 16 passes or 16 lanes",
        ));
    }
    Ok(hash)
}
