//! Numbers of worker threads, and sets of workers.

use std::ops::{BitAnd, BitOr, BitOrAssign, Sub};
use std::sync::atomic::{AtomicU64, Ordering};

/// Greatest number of workers of a node, which is the number of bits of a [`WorkerSet`].
pub const WORKERS_MAX: usize = 256;

/// Number of words of a set.
const WORDS: usize = WORKERS_MAX / WORD_BITS;
/// Number of bits of a word.
const WORD_BITS: usize = u64::BITS as usize;

/// Number of a worker thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(u8);

impl WorkerId {
    /// Creates the identity of the worker of a number.
    ///
    /// # Panics
    /// The number is not below [`WORKERS_MAX`].
    pub const fn new(number: usize) -> Self {
        assert!(number < WORKERS_MAX, "a node has at most 256 workers");
        // The number fits into a byte.
        let [number, ..] = number.to_le_bytes();
        Self(number)
    }

    /// Creates the identity of the worker of a number; every byte is a valid number.
    pub const fn of_number(number: u8) -> Self {
        Self(number)
    }

    /// Iterates over the workers of a node with that many workers.
    pub fn all(workers: usize) -> impl Iterator<Item = Self> {
        (0..workers).map(Self::new)
    }

    /// The number of the worker.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The word of the worker in a set.
    #[inline]
    const fn word(self) -> usize {
        self.index() / WORD_BITS
    }

    /// The bit of the worker in its word.
    #[inline]
    const fn bit(self) -> u64 {
        1 << (self.index() % WORD_BITS)
    }
}

/// A set of workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerSet([u64; WORDS]);

impl WorkerSet {
    /// The empty set.
    pub const NONE: Self = Self([0; WORDS]);
    /// The set of all workers that a node can have.
    pub const ALL: Self = Self([u64::MAX; WORDS]);

    /// Creates a set of one worker.
    #[inline]
    pub const fn of(worker: WorkerId) -> Self {
        let mut set = Self::NONE;
        set.insert(worker);
        set
    }

    /// Whether the set is empty.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.iter().fold(0, |all, word| all | word) == 0
    }

    /// Number of workers in the set.
    #[inline]
    pub fn len(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether the set contains a worker.
    #[inline]
    pub const fn contains(self, worker: WorkerId) -> bool {
        self.0[worker.word()] & worker.bit() != 0
    }

    /// Adds a worker.
    #[inline]
    pub const fn insert(&mut self, worker: WorkerId) {
        self.0[worker.word()] |= worker.bit();
    }

    /// Returns the set without a worker.
    #[inline]
    #[must_use]
    pub const fn without(mut self, worker: WorkerId) -> Self {
        self.0[worker.word()] &= !worker.bit();
        self
    }

    #[inline]
    fn with_words_of(mut self, other: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word = join(*word, other);
        }
        self
    }
}

impl IntoIterator for WorkerSet {
    type Item = WorkerId;
    type IntoIter = Workers;

    #[inline]
    fn into_iter(self) -> Workers {
        Workers { set: self, word: 0 }
    }
}

/// The workers of a set, the lowest number first.
#[derive(Clone, Debug)]
pub struct Workers {
    set: WorkerSet,
    /// Index of the current word; all words before it are empty.
    word: usize,
}

impl Iterator for Workers {
    type Item = WorkerId;

    #[inline]
    fn next(&mut self) -> Option<WorkerId> {
        while let Some(word) = self.set.0.get_mut(self.word) {
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(WorkerId::new(self.word * WORD_BITS + bit));
            }
            self.word += 1;
        }
        None
    }
}

impl FromIterator<WorkerId> for WorkerSet {
    fn from_iter<I: IntoIterator<Item = WorkerId>>(workers: I) -> Self {
        let mut set = Self::NONE;
        for worker in workers {
            set.insert(worker);
        }
        set
    }
}

impl BitOr for WorkerSet {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        self.with_words_of(other, |word, other| word | other)
    }
}

impl BitOrAssign for WorkerSet {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

impl BitAnd for WorkerSet {
    type Output = Self;

    #[inline]
    fn bitand(self, other: Self) -> Self {
        self.with_words_of(other, |word, other| word & other)
    }
}

/// The workers of the first set that are not in the second.
impl Sub for WorkerSet {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        self.with_words_of(other, |word, other| word & !other)
    }
}

/// A set of workers that several threads change, each for its own worker. A read is not atomic: the
/// bits of two workers may be of different moments.
#[derive(Debug, Default)]
pub struct SharedWorkerSet([AtomicU64; WORDS]);

impl SharedWorkerSet {
    /// Reads the set.
    pub fn load(&self, ordering: Ordering) -> WorkerSet {
        WorkerSet(std::array::from_fn(|word| self.0[word].load(ordering)))
    }

    /// Replaces the set.
    pub fn store(&self, workers: WorkerSet, ordering: Ordering) {
        for (shared, word) in self.0.iter().zip(workers.0) {
            shared.store(word, ordering);
        }
    }

    /// Adds or removes a worker.
    pub fn put(&self, worker: WorkerId, is_in: bool, ordering: Ordering) {
        let word = &self.0[worker.word()];
        if is_in {
            word.fetch_or(worker.bit(), ordering);
        } else {
            word.fetch_and(!worker.bit(), ordering);
        }
    }

    /// Removes a worker; true if it was the last one in the set. If two workers are removed at the
    /// same moment, the result is true for one of them or for both.
    pub fn take_last(&self, worker: WorkerId) -> bool {
        // The operations have one total order: the thread that removes the last worker sees an
        // empty set.
        let word = &self.0[worker.word()];
        let was_in = word.fetch_and(!worker.bit(), Ordering::SeqCst) & worker.bit() != 0;
        was_in && self.load(Ordering::SeqCst).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_workers_that_were_put_into_it() {
        let workers = [255, 0, 63].map(WorkerId::new);
        let set: WorkerSet = workers.into_iter().collect();
        assert_eq!(set.len(), 3);
        assert!(workers.iter().all(|worker| set.contains(*worker)));
        let rest = set.without(workers[2]);
        assert_eq!(
            rest.into_iter().collect::<Vec<_>>(),
            [workers[1], workers[0]]
        );
        assert_eq!(set - rest, WorkerSet::of(workers[2]));
        assert!((WorkerSet::ALL - WorkerSet::ALL).is_empty());
    }

    #[test]
    fn the_removal_of_the_last_worker_is_reported() {
        let set = SharedWorkerSet::default();
        let [one, other] = [3, 140].map(WorkerId::new);
        set.put(one, true, Ordering::Relaxed);
        set.put(other, true, Ordering::Relaxed);
        assert!(!set.take_last(one));
        assert!(!set.take_last(one));
        assert!(set.take_last(other));
        assert!(set.load(Ordering::Relaxed).is_empty());
        assert!(!set.take_last(one), "it was not in the set");
    }
}
