//! Reads a file as far as it can be read: a bad sector costs what is in it, not the start.

use std::io;

use crate::disk::{File, read_full};

/// Read at a time while all is well.
const PIECE: usize = 1024 * 1024;
/// Read at a time where a piece failed.
const BLOCK: usize = 4096;
/// Attempts at a block before it is given up.
const ATTEMPTS: u32 = 4;

/// Fills `into` with the first `len` bytes of the file; zeros stand for what cannot be read. How
/// many bytes that are.
pub(super) fn read_tolerant(file: &impl File, len: u64, into: &mut Vec<u8>) -> u64 {
    // What is in it is overwritten, so only what is new is made zero.
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
