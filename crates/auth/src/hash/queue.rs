//! Work for the hashing threads, in two queues: for users who have logged in from their address
//! before, and for all others.
//!
//! A flood of logins from ever-new addresses fills the second queue and leaves the first one free;
//! each of the two gets every other turn while both have work. The queue of a login does not reveal
//! which users exist: only a correct password admits a user to the first one.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use thrum_access::Login;

/// Most work in one queue: about 5 s of one thread, after which a client would have given up.
pub(super) const LINE_MAX: usize = 256;
/// From this length on a queue accepts no more than a quarter of it from one user: an attacker who
/// guesses one password, or a user with many misconfigured devices, does not exclude the others.
const FAIR_FROM: usize = LINE_MAX / 2;
const USER_MAX: usize = LINE_MAX / 4;

/// A job of a thread.
pub(super) type Job = Box<dyn FnOnce() + Send>;

/// The origin of a hashing job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requester<'a> {
    username: &'a str,
    is_known_there: bool,
}

impl<'a> Requester<'a> {
    /// The user name of a login, whether the user exists or not.
    pub(crate) fn login(login: &'a Login) -> Self {
        Self {
            username: login.identity.username.as_deref().unwrap_or_default(),
            is_known_there: login.is_known_there,
        }
    }
}

/// The queues.
#[derive(Default)]
pub(super) struct Queue {
    hasher: RandomState,
    /// Guards the queues, for adding or removing one job.
    lines: Mutex<Lines>,
    has_work: Condvar,
}

#[derive(Default)]
struct Lines {
    known: Line,
    others: Line,
    /// The next turn is that of the other queue.
    is_turn_of_others: bool,
    is_over: bool,
}

#[derive(Default)]
struct Line {
    /// Each with its user.
    jobs: VecDeque<(u64, Job)>,
    /// Number of jobs of each user.
    of_user: HashMap<u64, usize>,
}

impl Line {
    fn push(&mut self, user: u64, job: Job) -> bool {
        let own = self.of_user.get(&user).copied().unwrap_or_default();
        let length = self.jobs.len();
        if length >= LINE_MAX || (length >= FAIR_FROM && own >= USER_MAX) {
            return false;
        }
        self.of_user.insert(user, own + 1);
        self.jobs.push_back((user, job));
        true
    }

    fn pop(&mut self) -> Option<Job> {
        let (user, job) = self.jobs.pop_front()?;
        if let Some(own) = self.of_user.get_mut(&user) {
            *own -= 1;
            if *own == 0 {
                self.of_user.remove(&user);
            }
        }
        Some(job)
    }
}

impl Lines {
    fn pop(&mut self) -> Option<Job> {
        let (first, second) = if self.is_turn_of_others {
            (&mut self.others, &mut self.known)
        } else {
            (&mut self.known, &mut self.others)
        };
        let job = first.pop().or_else(|| second.pop());
        self.is_turn_of_others ^= job.is_some();
        job
    }
}

impl Queue {
    /// Adds work for a thread; false if too much of it waits.
    pub(super) fn push(&self, requester: Requester<'_>, job: Job) -> bool {
        let user = self.hasher.hash_one(requester.username);
        let mut lines = self.lines();
        let line = if requester.is_known_there {
            &mut lines.known
        } else {
            &mut lines.others
        };
        let is_taken = line.push(user, job);
        drop(lines);
        self.has_work.notify_one();
        is_taken
    }

    /// Waits for work; none once the queue is closed.
    pub(super) fn pop(&self) -> Option<Job> {
        let mut lines = self.lines();
        loop {
            if lines.is_over {
                return None;
            }
            if let Some(job) = lines.pop() {
                return Some(job);
            }
            let waited = self.has_work.wait(lines);
            lines = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Closes the queue: no more work arrives, and pending work is dropped.
    pub(super) fn end(&self) {
        let mut lines = self.lines();
        lines.is_over = true;
        lines.known = Line::default();
        lines.others = Line::default();
        drop(lines);
        self.has_work.notify_all();
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    fn known(username: &str) -> Requester<'_> {
        Requester {
            username,
            is_known_there: true,
        }
    }

    fn other(username: &str) -> Requester<'_> {
        Requester {
            username,
            is_known_there: false,
        }
    }

    fn job(done: &Sender<String>, name: &str) -> Job {
        let (done, name) = (done.clone(), name.to_owned());
        Box::new(move || done.send(name).unwrap())
    }

    #[test]
    fn a_flood_of_unknown_logins_leaves_room_and_every_other_turn_to_known_users() {
        let (queue, (done, order)) = (Queue::default(), channel());
        let flood = (0..1000).filter(|number| {
            let name = format!("stranger-{number}");
            queue.push(other(&name), job(&done, "stranger"))
        });
        assert_eq!(flood.count(), LINE_MAX);
        for name in ["jo", "jim"] {
            assert!(queue.push(known(name), job(&done, name)));
        }
        for _ in 0..4 {
            queue.pop().unwrap()();
        }
        let first: Vec<String> = order.try_iter().collect();
        assert_eq!(first, ["jo", "stranger", "jim", "stranger"]);
    }

    #[test]
    fn one_name_fills_no_line() {
        let (queue, (done, _)) = (Queue::default(), channel());
        let taken = |name: &str| {
            (0..1000)
                .filter(|_| queue.push(other(name), job(&done, name)))
                .count()
        };
        assert_eq!(taken("guessed"), FAIR_FROM);
        assert_eq!(taken("jo"), USER_MAX);
        assert_eq!(taken("jim"), USER_MAX);
        assert_eq!(taken("joan"), 0);
        // A finished job makes room again.
        assert!(queue.pop().is_some());
        assert_eq!(taken("joan"), 1);
    }

    #[test]
    fn a_single_queue_has_all_turns() {
        let (queue, (done, order)) = (Queue::default(), channel());
        for name in ["a", "b", "c"] {
            assert!(queue.push(other(name), job(&done, name)));
        }
        (0..3).for_each(|_| queue.pop().unwrap()());
        assert_eq!(order.try_iter().collect::<Vec<_>>(), ["a", "b", "c"]);
        queue.end();
        assert!(queue.pop().is_none());
    }
}
