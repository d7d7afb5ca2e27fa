//! The memory of Argon2, used again. An allocator keeps memory for each thread that has had some: a
//! flood of logins would leave that of a hash in each thread that takes a turn.

use std::sync::{Mutex, PoisonError};

use argon2::Block;

/// Memory that no hash has at this moment: as many pieces as there were hashes at once.
#[derive(Debug)]
pub(super) struct Blocks {
    /// Blocks of a piece. Hashes that need more have memory of their own.
    len: usize,
    /// Locked for a moment, by threads that hash.
    free: Mutex<Vec<Vec<Block>>>,
}

impl Blocks {
    pub(super) const fn of_len(len: usize) -> Self {
        Self {
            len,
            free: Mutex::new(Vec::new()),
        }
    }

    /// Hashes with so many blocks; none if there is no memory.
    pub(super) fn lend<T>(&self, count: usize, hash: impl FnOnce(&mut [Block]) -> T) -> Option<T> {
        if count > self.len {
            return Some(hash(&mut new(count)?));
        }
        let kept = self.free().pop();
        let mut blocks = match kept {
            Some(blocks) => blocks,
            None => new(self.len)?,
        };
        let hashed = hash(&mut blocks[..count]);
        self.free().push(blocks);
        Some(hashed)
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<Vec<Block>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn new(count: usize) -> Option<Vec<Block>> {
    let mut blocks = Vec::new();
    blocks.try_reserve_exact(count).ok()?;
    blocks.resize(count, Block::default());
    Some(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_one_after_the_other_have_the_same_memory_and_those_at_once_have_not() {
        let blocks = Blocks::of_len(8);
        let place = |lent: &mut [Block]| lent.as_ptr().addr();
        let first = blocks.lend(8, place).unwrap();
        assert_eq!(
            blocks.lend(3, |lent| (place(lent), lent.len())),
            Some((first, 3))
        );
        let inner = blocks.lend(8, |_| blocks.lend(8, place).unwrap()).unwrap();
        assert_ne!(inner, first);
        assert_eq!(blocks.free().len(), 2);
        for _ in 0..100 {
            blocks.lend(8, |_| blocks.lend(8, place)).unwrap();
        }
        assert_eq!(blocks.free().len(), 2);
    }

    #[test]
    fn the_memory_of_a_hash_that_needs_more_is_not_kept() {
        let blocks = Blocks::of_len(8);
        assert_eq!(blocks.lend(9, |lent| lent.len()), Some(9));
        assert_eq!(blocks.free().len(), 0);
        assert_eq!(blocks.lend(usize::MAX, |_| ()), None);
    }
}
