//! Reads a file as far as possible: a bad sector loses only its own content and does not prevent
//! the start.

use std::io;

use crate::disk::{File, read_full};

/// Bytes per read without errors.
const PIECE: usize = 1024 * 1024;
/// Bytes per read after an error.
const BLOCK: usize = 4096;
/// Number of attempts to read a block.
const ATTEMPTS: u32 = 4;

/// Fills `into` with the first `len` bytes of the file, with zeros in place of unreadable bytes,
/// and returns the number of unreadable bytes.
pub(super) fn read_tolerant(file: &impl File, len: u64, into: &mut Vec<u8>) -> u64 {
    // Existing bytes are overwritten, so only new ones are set to zero.
    into.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
    let mut unreadable = 0;
    let mut end = 0;
    for (number, piece) in into.chunks_mut(PIECE).enumerate() {
        let offset = (number * PIECE) as u64;
        if let Ok(done) = read_full(file, piece, offset) {
            end = offset + done as u64;
        } else {
            end = offset + piece.len() as u64;
            piece.fill(0);
            unreadable += read_blocks(file, piece, offset);
        }
    }
    into.truncate(usize::try_from(end).unwrap_or(usize::MAX).min(into.len()));
    unreadable
}

fn read_blocks(file: &impl File, piece: &mut [u8], offset: u64) -> u64 {
    let mut unreadable = 0;
    for (number, block) in piece.chunks_mut(BLOCK).enumerate() {
        let at = offset + (number * BLOCK) as u64;
        if read_block(file, block, at).is_err() {
            block.fill(0);
            unreadable += block.len() as u64;
        }
    }
    unreadable
}

fn read_block(file: &impl File, block: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut result = read_full(file, block, offset);
    for _ in 1..ATTEMPTS {
        if result.is_ok() {
            break;
        }
        result = read_full(file, block, offset);
    }
    result
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::*;

    /// A file whose listed blocks cannot be read for a number of times.
    struct Worn {
        bytes: Vec<u8>,
        failures: Mutex<BTreeMap<usize, u32>>,
    }

    impl Worn {
        fn new(len: usize, failures: &[(usize, u32)]) -> Self {
            Self {
                bytes: (0..len)
                    .map(|at| u8::try_from(at / BLOCK % 250 + 1).unwrap())
                    .collect(),
                failures: Mutex::new(failures.iter().copied().collect()),
            }
        }

        /// The bytes that are read, and the number of unreadable ones.
        fn read(&self, len: usize) -> (Vec<u8>, u64) {
            let mut into = vec![9; 10];
            let unreadable = read_tolerant(self, len as u64, &mut into);
            (into, unreadable)
        }
    }

    impl File for Worn {
        fn size(&self) -> io::Result<u64> {
            Ok(self.bytes.len() as u64)
        }

        fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
            let start = usize::try_from(offset).unwrap().min(self.bytes.len());
            let end = (start + into.len()).min(self.bytes.len());
            let mut failures = self.failures.lock().unwrap();
            let mut blocks = failures.range_mut(start / BLOCK..end.div_ceil(BLOCK));
            if let Some((_, left)) = blocks.find(|(_, left)| **left > 0) {
                *left -= 1;
                return Err(io::Error::other("a bad sector"));
            }
            into[..end - start].copy_from_slice(&self.bytes[start..end]);
            Ok(end - start)
        }

        fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<usize> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_is_read_up_to_its_end_or_as_far_as_asked() {
        let file = Worn::new(PIECE + 5000, &[]);
        assert_eq!(file.read(PIECE + 5000), (file.bytes.clone(), 0));
        assert_eq!(file.read(2 * PIECE), (file.bytes.clone(), 0));
        assert_eq!(file.read(PIECE + 7), (file.bytes[..PIECE + 7].to_vec(), 0));
        assert_eq!(file.read(100), (file.bytes[..100].to_vec(), 0));
        assert_eq!(file.read(0), (Vec::new(), 0));
    }

    #[test]
    fn an_unreadable_block_loses_only_its_own_bytes() {
        let len = PIECE + 5000;
        let blocks = PIECE / BLOCK;
        let file = Worn::new(len, &[(2, 100), (blocks + 1, 100)]);
        let mut expected = file.bytes.clone();
        expected[2 * BLOCK..3 * BLOCK].fill(0);
        expected[PIECE + BLOCK..].fill(0);
        let lost = BLOCK + (5000 - BLOCK);
        assert_eq!(file.read(len), (expected, lost as u64));
    }

    #[test]
    fn a_block_is_read_with_a_limited_number_of_attempts() {
        // One attempt for the piece and four for the block.
        for (failures, lost) in [(4, 0), (5, BLOCK as u64)] {
            let file = Worn::new(3 * BLOCK, &[(1, failures)]);
            let (bytes, unreadable) = file.read(3 * BLOCK);
            assert_eq!(unreadable, lost);
            assert_eq!(bytes == file.bytes, lost == 0);
        }
    }
}
