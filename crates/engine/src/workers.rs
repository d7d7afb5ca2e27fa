//! Numbers of worker threads, and sets of them.

use std::ops::{BitAnd, BitOr, BitOrAssign, Sub};
use std::sync::atomic::{AtomicU64, Ordering};

/// Most workers of a node: a [`WorkerSet`] has a bit for each.
pub const WORKERS_MAX: usize = 256;

/// Words of a set, and bits of each.
const WORDS: usize = WORKERS_MAX / WORD_BITS;
const WORD_BITS: usize = u64::BITS as usize;

/// Number of a worker thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(u8);

impl WorkerId {
    /// # Panics
    /// The number is not below [`WORKERS_MAX`].
    pub const fn new(number: usize) -> Self {
        assert!(number < WORKERS_MAX, "a node has at most 256 workers");
        // A cast that cannot lose anything.
        let [number, ..] = number.to_le_bytes();
        Self(number)
    }

    /// As [`WorkerId::new`]; each byte is the number of one.
    pub const fn of_number(number: u8) -> Self {
        Self(number)
    }

    /// The workers of a node that has so many.
    pub fn all(workers: usize) -> impl Iterator<Item = Self> {
        (0..workers).map(Self::new)
    }

    /// The number.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Its word in a set.
    #[inline]
    const fn word(self) -> usize {
        self.index() / WORD_BITS
    }

    /// Its bit in that word.
    #[inline]
    const fn bit(self) -> u64 {
        1 << (self.index() % WORD_BITS)
    }
}

/// A set of workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerSet([u64; WORDS]);

impl WorkerSet {
    /// No worker.
    pub const NONE: Self = Self([0; WORDS]);
    /// Every worker that a node can have.
    pub const ALL: Self = Self([u64::MAX; WORDS]);

    /// A set of one worker.
    #[inline]
    pub const fn of(worker: WorkerId) -> Self {
        let mut set = Self::NONE;
        set.insert(worker);
        set
    }

    /// There is none in it.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.iter().fold(0, |all, word| all | word) == 0
    }

    /// Workers in it.
    #[inline]
    pub fn len(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The worker is in it.
    #[inline]
    pub const fn contains(self, worker: WorkerId) -> bool {
        self.0[worker.word()] & worker.bit() != 0
    }

    /// Puts a worker in.
    #[inline]
    pub const fn insert(&mut self, worker: WorkerId) {
        self.0[worker.word()] |= worker.bit();
    }

    /// The set without that worker.
    #[inline]
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
    /// Those before it are empty.
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

/// Those of the first set that are not in the second.
impl Sub for WorkerSet {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        self.with_words_of(other, |word, other| word & !other)
    }
}

/// A set of workers that several threads change, each worker for itself: what is read of two
/// workers may be of different moments.
#[derive(Debug, Default)]
pub struct SharedWorkerSet([AtomicU64; WORDS]);

impl SharedWorkerSet {
    /// The set as it is now.
    pub fn load(&self, ordering: Ordering) -> WorkerSet {
        WorkerSet(std::array::from_fn(|word| self.0[word].load(ordering)))
    }

    /// Makes it that set.
    pub fn store(&self, workers: WorkerSet, ordering: Ordering) {
        for (shared, word) in self.0.iter().zip(workers.0) {
            shared.store(word, ordering);
        }
    }

    /// Puts a worker in, or takes it out.
    pub fn put(&self, worker: WorkerId, is_in: bool, ordering: Ordering) {
        let word = &self.0[worker.word()];
        if is_in {
            word.fetch_or(worker.bit(), ordering);
        } else {
            word.fetch_and(!worker.bit(), ordering);
        }
    }

    /// Takes a worker out; true if it was the last one in the set. Of two that are taken out at the
    /// same moment one is told so, or both.
    pub fn take_last(&self, worker: WorkerId) -> bool {
        // All agree on the order of these steps: whoever takes the last one out sees no other.
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
    fn the_last_one_that_is_taken_out_is_known() {
        let set = SharedWorkerSet::default();
        let [one, other] = [3, 140].map(WorkerId::new);
        set.put(one, true, Ordering::Relaxed);
        set.put(other, true, Ordering::Relaxed);
        assert!(!set.take_last(one));
        assert!(!set.take_last(one));
        assert!(set.take_last(other));
        assert!(set.load(Ordering::Relaxed).is_empty());
    }
}
