//! Numbers of worker threads, and sets of them.

use std::ops::{BitAnd, BitOr, BitOrAssign, Sub};
use std::sync::atomic::{AtomicU64, Ordering};

/// Most workers of a node: a [`WorkerSet`] has a bit for each.
pub(crate) const WORKERS_MAX: usize = 64;

/// Number of a worker thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct WorkerId(u8);

impl WorkerId {
    /// # Panics
    /// The number is not below [`WORKERS_MAX`].
    pub(crate) const fn new(number: usize) -> Self {
        assert!(number < WORKERS_MAX, "a node has at most 64 workers");
        // A cast that cannot lose anything.
        let [number, ..] = number.to_le_bytes();
        Self(number)
    }

    /// The workers of a node that has so many.
    pub(crate) fn all(workers: usize) -> impl Iterator<Item = Self> {
        (0..workers).map(Self::new)
    }

    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// The worker that has a session: the number tells where it began, and with fewer workers than
    /// then where it goes on.
    pub(crate) const fn of_session(id: u64, workers: usize) -> Self {
        let began = id % WORKERS_MAX as u64;
        let [number, ..] = (began % workers as u64).to_le_bytes();
        Self(number)
    }

    #[inline]
    const fn bit(self) -> u64 {
        1 << self.0
    }
}

/// A set of workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkerSet(u64);

impl WorkerSet {
    pub(crate) const NONE: Self = Self(0);
    /// Every worker that a node can have.
    pub(crate) const ALL: Self = Self(u64::MAX);

    #[inline]
    pub(crate) const fn of(worker: WorkerId) -> Self {
        Self(worker.bit())
    }

    #[inline]
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) const fn len(self) -> u32 {
        self.0.count_ones()
    }

    #[inline]
    pub(crate) const fn contains(self, worker: WorkerId) -> bool {
        self.0 & worker.bit() != 0
    }

    #[inline]
    pub(crate) const fn insert(&mut self, worker: WorkerId) {
        self.0 |= worker.bit();
    }

    #[inline]
    pub(crate) const fn without(self, worker: WorkerId) -> Self {
        Self(self.0 & !worker.bit())
    }
}

impl IntoIterator for WorkerSet {
    type Item = WorkerId;
    type IntoIter = Workers;

    #[inline]
    fn into_iter(self) -> Workers {
        Workers(self.0)
    }
}

/// The workers of a set, the lowest number first.
#[derive(Clone, Debug)]
pub(crate) struct Workers(u64);

impl Iterator for Workers {
    type Item = WorkerId;

    #[inline]
    fn next(&mut self) -> Option<WorkerId> {
        if self.0 == 0 {
            return None;
        }
        let [number, ..] = self.0.trailing_zeros().to_le_bytes();
        self.0 &= self.0 - 1;
        Some(WorkerId(number))
    }
}

impl FromIterator<WorkerId> for WorkerSet {
    fn from_iter<I: IntoIterator<Item = WorkerId>>(workers: I) -> Self {
        workers
            .into_iter()
            .fold(Self::NONE, |set, worker| set | Self::of(worker))
    }
}

impl BitOr for WorkerSet {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for WorkerSet {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for WorkerSet {
    type Output = Self;

    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// Those of the first set that are not in the second.
impl Sub for WorkerSet {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// A set of workers that several threads change.
#[derive(Debug, Default)]
pub(crate) struct SharedWorkerSet(AtomicU64);

impl SharedWorkerSet {
    pub(crate) fn load(&self, ordering: Ordering) -> WorkerSet {
        WorkerSet(self.0.load(ordering))
    }

    pub(crate) fn store(&self, workers: WorkerSet, ordering: Ordering) {
        self.0.store(workers.0, ordering);
    }

    pub(crate) fn put(&self, worker: WorkerId, is_in: bool, ordering: Ordering) {
        if is_in {
            self.0.fetch_or(worker.bit(), ordering);
        } else {
            self.0.fetch_and(!worker.bit(), ordering);
        }
    }

    /// Takes a worker out; true if it was the last one in the set.
    pub(crate) fn take_last(&self, worker: WorkerId, ordering: Ordering) -> bool {
        self.0.fetch_and(!worker.bit(), ordering) == worker.bit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_workers_that_were_put_into_it() {
        let workers = [63, 0, 7].map(WorkerId::new);
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
        let [one, other] = [3, 40].map(WorkerId::new);
        set.put(one, true, Ordering::Relaxed);
        set.put(other, true, Ordering::Relaxed);
        assert!(!set.take_last(one, Ordering::Relaxed));
        assert!(!set.take_last(one, Ordering::Relaxed));
        assert!(set.take_last(other, Ordering::Relaxed));
        assert!(set.load(Ordering::Relaxed).is_empty());
    }

    #[test]
    fn a_session_is_with_the_worker_where_it_began_or_with_the_one_that_has_its_part() {
        let id = 5 * WORKERS_MAX as u64 + 3;
        assert_eq!(WorkerId::of_session(id, 64), WorkerId::new(3));
        assert_eq!(WorkerId::of_session(id, 2), WorkerId::new(1));
    }
}
