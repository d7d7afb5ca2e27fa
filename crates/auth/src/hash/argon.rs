//! Argon2: hashing and verifying passwords.

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Params, Version};
use aws_lc_rs::rand;

use super::HashError;
use super::blocks::Blocks;

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

/// Memory of hashes like ours.
static BLOCKS: Blocks = Blocks::of_len(MEMORY_KIB as usize);

/// Hashes a password with Argon2id and a random salt: 19 MiB, 2 passes, 1 lane; about 20 ms.
///
/// # Errors
/// The system provides no random numbers or no memory.
pub fn create(password: &[u8]) -> Result<String, HashError> {
    let mut salt = [0; SALT_BYTES];
    rand::fill(&mut salt).map_err(|_| HashError::Refused("no random numbers for a salt"))?;
    let refused = |_| HashError::Refused("Argon2 parameters");
    let params = Params::new(MEMORY_KIB, PASSES, LANES, Some(Params::DEFAULT_OUTPUT_LEN));
    let hashing = Hashing {
        algorithm: Algorithm::Argon2id,
        version: Version::V0x13,
        params: params.map_err(|_| HashError::Refused("Argon2 parameters"))?,
        salt: Salt::new(&salt).map_err(|_| HashError::Refused("a salt for Argon2"))?,
    };
    let hash = PasswordHash {
        algorithm: hashing.algorithm.ident(),
        version: Some(hashing.version.into()),
        params: ParamsString::try_from(&hashing.params).map_err(refused)?,
        salt: Some(hashing.salt),
        hash: Some(hashing.output(password)?),
    };
    Ok(hash.to_string())
}

/// Verifies `$argon2id$v=19$m=19456,t=2,p=1$salt$hash`.
pub(super) fn verify(stored: &str, password: &[u8]) -> Result<bool, HashError> {
    let (hashing, expected) = parse(stored)?;
    // In constant time.
    Ok(hashing.output(password)? == expected)
}

pub(super) fn check(stored: &str) -> Result<(), HashError> {
    parse(stored).map(drop)
}

/// How a password is hashed.
struct Hashing {
    algorithm: Algorithm,
    version: Version,
    params: Params,
    salt: Salt,
}

impl Hashing {
    fn output(&self, password: &[u8]) -> Result<Output, HashError> {
        let argon = Argon2::new(self.algorithm, self.version, self.params.clone());
        let len = self.params.output_len();
        let len = len.unwrap_or(Params::DEFAULT_OUTPUT_LEN);
        let mut buffer = [0; Output::MAX_LENGTH];
        let out = buffer
            .get_mut(..len)
            .ok_or(HashError::Malformed("Argon2"))?;
        let hashed = BLOCKS.lend(self.params.block_count(), |blocks| {
            argon.hash_password_into_with_memory(password, &self.salt, out, blocks)
        });
        hashed
            .ok_or(HashError::Refused("no memory for Argon2"))?
            .map_err(|_| HashError::Refused("Argon2 parameters"))?;
        Output::new(&buffer[..len]).map_err(|_| HashError::Malformed("Argon2"))
    }
}

fn parse(stored: &str) -> Result<(Hashing, Output), HashError> {
    let malformed = || HashError::Malformed("Argon2");
    let hash = PasswordHash::new(stored).map_err(|_| malformed())?;
    let (Some(salt), Some(expected)) = (hash.salt, hash.hash) else {
        return Err(malformed());
    };
    let params = Params::try_from(&hash).map_err(|_| malformed())?;
    if params.m_cost() > MEMORY_KIB_MAX
        || params.t_cost() > PASSES_MAX
        || params.p_cost() > LANES_MAX
    {
        return Err(HashError::Refused(
            "Argon2 with more than 256 MiB, 16 passes or 16 lanes",
        ));
    }
    let algorithm = Algorithm::try_from(hash.algorithm.as_str()).map_err(|_| malformed())?;
    let version = hash.version.map(Version::try_from).transpose();
    let hashing = Hashing {
        algorithm,
        version: version.map_err(|_| malformed())?.unwrap_or_default(),
        params,
        salt,
    };
    Ok((hashing, expected))
}
