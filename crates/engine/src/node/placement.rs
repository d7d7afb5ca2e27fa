//! Placement of sessions on workers: a rule over session numbers, chosen at each start.
//!
//! The number of a session alone does not determine its worker, so that a data directory opens with
//! any number of workers. Messages that were in transit to a worker when a node ended are for the
//! sessions that the rule of that time assigned to the worker; therefore the names of their places
//! in the storage contain the rule.

use std::fmt;

use crate::workers::{WORKERS_MAX, WorkerId};

/// Number of rules that are tried at a start to find the one that balances the sessions best.
const SALTS: u16 = 16;

/// The rule that assigns sessions to the workers of a node: the workers share each row of as many
/// consecutive session numbers as there are workers. The salt and the number of the row choose the
/// worker of the first session in the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// 1 to [`WORKERS_MAX`].
    workers: usize,
    salt: u16,
}

impl Placement {
    /// Creates the rule of a node without sessions, for 1 to [`WORKERS_MAX`] workers.
    pub const fn new(workers: usize) -> Self {
        Self { workers, salt: 0 }
    }

    /// Returns the tried rule whose fullest worker has the fewest of these sessions.
    pub fn balanced(workers: usize, sessions: &[u64]) -> Self {
        let rules = (0..SALTS).map(|salt| Self { workers, salt });
        let fullest = |placement: &Self| {
            let mut counts = vec![0_usize; workers];
            for session in sessions {
                counts[placement.worker_of(*session).index()] += 1;
            }
            counts.into_iter().max()
        };
        rules
            .min_by_key(fullest)
            .unwrap_or_else(|| Self::new(workers))
    }

    /// The workers of the node.
    pub fn workers(self) -> impl Iterator<Item = WorkerId> {
        WorkerId::all(self.workers)
    }

    /// The worker of a session.
    pub const fn worker_of(self, session: u64) -> WorkerId {
        let workers = self.workers as u64;
        let (row, place) = (session / workers, session % workers);
        let number = (place + self.first_worker(row)) % workers;
        let [number, ..] = number.to_le_bytes();
        WorkerId::of_number(number)
    }

    /// The number of the session in a row that a worker has.
    pub const fn session(self, row: u64, worker: WorkerId) -> u64 {
        let workers = self.workers as u64;
        let place = (worker.index() as u64 + workers - self.first_worker(row)) % workers;
        row * workers + place
    }

    /// The first row with numbers greater than all in the row of a session.
    pub const fn row_behind(self, session: u64) -> u64 {
        session / self.workers as u64 + 1
    }

    /// The number of the worker that has the first session of a row.
    const fn first_worker(self, row: u64) -> u64 {
        // The last steps of SplitMix64: neighbours have nothing to do with each other.
        let seed = (row ^ ((self.salt as u64) << 48)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % self.workers as u64
    }
}

/// Writes the number of workers, a colon and the salt.
impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.workers, self.salt)
    }
}

/// The error of parsing a text that is not a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidPlacement;

impl std::str::FromStr for Placement {
    type Err = InvalidPlacement;

    fn from_str(text: &str) -> Result<Self, InvalidPlacement> {
        let (workers, salt) = text.split_once(':').ok_or(InvalidPlacement)?;
        let workers = workers.parse().map_err(|_| InvalidPlacement)?;
        let salt = salt.parse().map_err(|_| InvalidPlacement)?;
        if (1..=WORKERS_MAX).contains(&workers) {
            Ok(Self { workers, salt })
        } else {
            Err(InvalidPlacement)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sessions of each worker.
    fn counts(placement: Placement, sessions: &[u64]) -> Vec<usize> {
        let mut counts = vec![0; placement.workers];
        for session in sessions {
            counts[placement.worker_of(*session).index()] += 1;
        }
        counts
    }

    #[test]
    fn a_worker_has_one_session_of_each_row() {
        for (workers, salt) in [(1, 0), (2, 1), (3, 15), (64, u16::MAX), (96, 2), (256, 0)] {
            let placement = Placement { workers, salt };
            let all: Vec<WorkerId> = placement.workers().collect();
            for row in [1, 2, 1000, u64::MAX / 256] {
                let session = |worker: &WorkerId| placement.session(row, *worker);
                let sessions: Vec<u64> = all.iter().map(session).collect();
                assert!(
                    sessions
                        .iter()
                        .all(|session| placement.row_behind(*session) == row + 1)
                );
                let have = sessions.iter().map(|session| placement.worker_of(*session));
                assert_eq!(have.collect::<Vec<_>>(), all);
            }
        }
    }

    #[test]
    fn sessions_stay_with_their_workers_in_every_version() {
        // The names of places in the storage contain the rule: it must not change.
        let mut sessions = [0, 1, 6, 7, 20, 1_000, 123_456_789, (1 << 40) + 5];
        for (workers, salt, expected) in [
            (7, 0, [2, 3, 1, 2, 3, 5, 2, 5]),
            (7, 3, [0, 1, 6, 4, 3, 5, 4, 2]),
            (256, 9, [103, 104, 109, 110, 123, 219, 198, 102]),
            (1, 5, [0; 8]),
        ] {
            let placement = Placement { workers, salt };
            let worker = |session| placement.worker_of(session).index();
            assert_eq!(sessions.map(worker), expected, "{placement}");
        }
        sessions[..2].copy_from_slice(&[u64::MAX / 2, u64::MAX]);
        for (workers, salt, expected) in [(7, 0, [5, 1]), (7, 3, [3, 4]), (256, 9, [76, 77])] {
            let placement = Placement { workers, salt };
            let far = [sessions[0], sessions[1]];
            let worker = |session| placement.worker_of(session).index();
            assert_eq!(far.map(worker), expected, "{placement}");
        }
    }

    #[test]
    fn sessions_of_two_workers_are_divided_evenly_among_96() {
        let before = Placement::new(2);
        let sessions: Vec<u64> = (1..=9600)
            .flat_map(|row| {
                before
                    .workers()
                    .map(move |worker| before.session(row, worker))
            })
            .collect();
        let after = Placement::balanced(96, &sessions);
        let counts = counts(after, &sessions);
        assert!(
            counts.iter().all(|count| (100..300).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn sessions_that_were_all_with_one_worker_are_divided_evenly_among_as_many_workers() {
        for workers in [2, 64] {
            let before = Placement::new(workers);
            let busy = WorkerId::new(1);
            let sessions: Vec<u64> = (1..=6400).map(|row| before.session(row, busy)).collect();
            let after = Placement::balanced(workers, &sessions);
            let most = 6400 / workers * 2;
            let counts = counts(after, &sessions);
            assert!(counts.iter().all(|count| *count < most), "{counts:?}");
        }
    }

    #[test]
    fn sessions_of_version_0_1_are_divided_evenly() {
        let sessions: Vec<u64> = (1..=9600).map(|count| count * 64 + count % 2).collect();
        let after = Placement::balanced(96, &sessions);
        let counts = counts(after, &sessions);
        assert!(
            counts.iter().all(|count| (50..200).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn a_rule_is_read_as_it_was_written() {
        for (workers, salt) in [(1, 0), (256, 7), (3, u16::MAX)] {
            let placement = Placement { workers, salt };
            assert_eq!(placement.to_string().parse(), Ok(placement));
        }
        for text in [
            "8", "", "0", "0:1", "257:1", "2:", "2:65536", ":1", "2:1:1", "-1",
        ] {
            assert_eq!(text.parse::<Placement>(), Err(InvalidPlacement), "{text}");
        }
    }
}
