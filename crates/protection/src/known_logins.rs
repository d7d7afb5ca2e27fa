//! Known users and clients of addresses, as bytes that outlive the process: after a restart with
//! its mass reconnect they remain known.
//!
//! They contain no name, no address and no secret except a key: each entry is a hash under it.

use std::io;

use super::logins::KNOWN_MAX;

/// The beginning of the bytes; another format gets another number.
const MAGIC: &[u8] = b"thrum known logins 1\n";

/// Known users and clients of addresses, as hashes under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownLogins {
    /// The key of the hashes.
    pub(crate) key: [u64; 2],
    /// Users with their addresses.
    pub(crate) users: Vec<u64>,
    /// Clients of users with their addresses.
    pub(crate) clients: Vec<u64>,
}

impl KnownLogins {
    /// Limit of the bytes that are read: as many entries as are kept, 8 bytes each.
    pub const BYTES_MAX: u64 = (2 * KNOWN_MAX as u64 + 16) * 8;

    /// Reads the bytes of [`KnownLogins::write_to`]; `None` if they are damaged.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.strip_prefix(MAGIC)?.as_chunks::<8>();
        let numbers: Vec<u64> = numbers
            .iter()
            .map(|bytes| u64::from_le_bytes(*bytes))
            .collect();
        let ([first, second, users, clients], hashes) = numbers.split_first_chunk::<4>()?;
        let users = usize::try_from(*users).ok()?;
        let (of_users, of_clients) = hashes.split_at_checked(users)?;
        let is_whole = rest.is_empty() && of_clients.len() as u64 == *clients;
        is_whole.then(|| Self {
            key: [*first, *second],
            users: of_users.to_vec(),
            clients: of_clients.to_vec(),
        })
    }

    /// Writes the bytes.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn write_to(&self, mut to: impl io::Write) -> io::Result<()> {
        to.write_all(MAGIC)?;
        let counts = [self.users.len() as u64, self.clients.len() as u64];
        let numbers = self.key.iter().chain(&counts);
        let numbers = numbers.chain(&self.users).chain(&self.clients);
        for number in numbers {
            to.write_all(&number.to_le_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_logins_read_back_and_damaged_ones_do_not() {
        let known = KnownLogins {
            key: [1, u64::MAX],
            users: vec![3, 4],
            clients: vec![5],
        };
        let mut bytes = Vec::new();
        known.write_to(&mut bytes).unwrap();
        assert_eq!(KnownLogins::parse(&bytes), Some(known));
        for damaged in [&bytes[..bytes.len() - 1], &bytes[..30], b"", b"nonsense"] {
            assert_eq!(KnownLogins::parse(damaged), None);
        }
    }
}
