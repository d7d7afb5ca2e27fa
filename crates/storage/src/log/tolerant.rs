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
