//! Derives one input from another.

use super::random::Random;

/// Longest input; longer ones take time and show no behaviour that shorter ones do not.
const INPUT_BYTES_MAX: usize = 8192;

/// Values at the boundaries of lengths and flags.
const BORDERS: [u8; 12] = [0, 1, 2, 3, 4, 0x23, 0x2B, 0x2F, 0x7F, 0x80, 0xFE, 0xFF];

/// Changes the input at one to four positions; `other` is the source of spliced parts.
pub(crate) fn mutate(input: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut changed = input.to_vec();
    for _ in 0..=random.below(4) {
        mutate_once(&mut changed, other, random);
    }
    changed.truncate(INPUT_BYTES_MAX);
    changed
}

fn mutate_once(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(input.len() + 1);
    match random.below(9) {
        0 => change(input, at, |byte| byte ^ (1 << random.below(8))),
        1 => change(input, at, |_| random.byte()),
        2 => change(input, at, |_| BORDERS[random.below(BORDERS.len())]),
        // Lengths become off by one, and adjacent bytes are swapped.
        3 => change(input, at, |byte| byte.wrapping_add(1)),
        4 => change(input, at, |byte| byte.wrapping_sub(1)),
        5 => {
            let len = 1 + random.below(8);
            let inserted = random.bytes(len);
            input.splice(at..at, inserted);
        }
        6 => {
            let end = (at + 1 + random.below(8)).min(input.len());
            input.drain(at..end);
        }
        7 => input.truncate(at),
        _ => {
            let from = random.below(other.len() + 1);
            let to = (from + random.below(64)).min(other.len());
            input.splice(at..at, other[from..to].iter().copied());
        }
    }
}

fn change(input: &mut [u8], at: usize, by: impl FnOnce(u8) -> u8) {
    if let Some(byte) = input.get_mut(at) {
        *byte = by(*byte);
    }
}
