//! How long a thread was ready to run and waited for a core.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::pread;

use crate::monitor::schedstat_wait_ns;

/// The kernel's account of a thread.
#[derive(Debug)]
pub(super) struct RunQueue {
    /// None if the kernel keeps no account.
    schedstat: Option<OwnedFd>,
    waited_ns: u64,
}

impl RunQueue {
    /// Opens the account of the calling thread.
    pub(super) fn of_this_thread() -> Self {
        Self::open("/proc/thread-self/schedstat")
    }

    /// Opens the account of another thread of this process.
    pub(super) fn of_thread(thread: u32) -> Self {
        Self::open(&format!("/proc/self/task/{thread}/schedstat"))
    }

    fn open(path: &str) -> Self {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let schedstat = open(path, flags, Mode::empty());
        let mut queue = Self {
            schedstat: schedstat.ok(),
            waited_ns: 0,
        };
        queue.wait_since_last_call();
        queue
    }

    /// The time that the thread has waited for a core since the last call, in nanoseconds; none if
    /// it is not known.
    pub(super) fn wait_since_last_call(&mut self) -> Option<u64> {
        let mut text = [0; 64];
        let len = pread(self.schedstat.as_ref()?, &mut text, 0).ok()?;
        let waited_ns = schedstat_wait_ns(text.get(..len)?)?;
        let before_ns = std::mem::replace(&mut self.waited_ns, waited_ns);
        Some(waited_ns.saturating_sub(before_ns))
    }
}

/// A wait for events at least this long was idle: input after it has just arrived.
const REST_NS_MIN: u64 = 20_000;

/// A wait for events, as its thread saw it.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "the unit of each")]
pub(super) struct Rest {
    /// The thread looked at its sockets last before the wait.
    pub(super) began_ns: u64,
    /// The last look at the clock in the turn before.
    pub(super) turn_seen_ns: u64,
    /// The alarm of the wait.
    pub(super) alarm_ns: u64,
    /// The thread got events.
    pub(super) woke_ns: u64,
    /// Time that the thread was ready to run and had no core; none if it is not known.
    pub(super) waited_ns: Option<u64>,
}

/// A turn writes what it has for less than this after its last look at the clock, unless the thread
/// was stopped or has thousands of writes.
const STOPPED_NS_MIN: u64 = 5_000_000;

/// An alarm that goes off this much later than the wait for a core explains was not heard: the
/// thread was stopped.
const ALARM_LATE_NS_MAX: u64 = 1_000_000;

impl Rest {
    /// Whether the thread slept: if not, there was input before the wait.
    pub(super) const fn is_long(began_ns: u64, woke_ns: u64) -> bool {
        woke_ns.saturating_sub(began_ns) >= REST_NS_MIN
    }

    /// Whether the thread had a core again only at the end of the rest: it may not have slept at
    /// all, because input was there before.
    fn is_only_waiting(self) -> bool {
        let rest_ns = self.woke_ns.saturating_sub(self.began_ns);
        let slept_ns = self
            .waited_ns
            .map(|waited_ns| rest_ns.saturating_sub(waited_ns));
        slept_ns.is_some_and(|slept_ns| slept_ns < REST_NS_MIN)
    }

    /// Whether the thread was stopped between its last look at the clock and the rest: what came
    /// meanwhile was there before the rest, which was short then.
    const fn follows_a_stop(self) -> bool {
        let stopped_ns = self.began_ns.saturating_sub(self.turn_seen_ns);
        let rest_ns = self.woke_ns.saturating_sub(self.began_ns);
        stopped_ns > STOPPED_NS_MIN && rest_ns < stopped_ns
    }

    /// Input that is read after the wait has arrived since then.
    fn unread_since_ns(self) -> u64 {
        let Some(waited_ns) = self.waited_ns else {
            return self.began_ns;
        };
        let late_ns = self.woke_ns.saturating_sub(self.alarm_ns);
        if late_ns > waited_ns + ALARM_LATE_NS_MAX {
            return self.began_ns;
        }
        self.woke_ns.saturating_sub(waited_ns).max(self.began_ns)
    }
}

/// The waits of a thread, one after the other.
#[derive(Debug)]
pub(super) struct Waits {
    turn_began_ns: u64,
    was_interrupted: bool,
}

impl Waits {
    pub(super) const fn new(now_ns: u64) -> Self {
        Self {
            turn_began_ns: now_ns,
            was_interrupted: false,
        }
    }

    /// A signal ended a wait: whoever stops a thread interrupts its wait.
    pub(super) const fn interrupt(&mut self) {
        self.was_interrupted = true;
    }

    /// A wait has ended. Input that is read in the turn that begins has arrived since the returned
    /// time.
    pub(super) fn begin_turn(&mut self, rest: Rest) -> u64 {
        let turn_began_ns = std::mem::replace(&mut self.turn_began_ns, rest.woke_ns);
        let was_interrupted = std::mem::take(&mut self.was_interrupted);
        let is_idle = Rest::is_long(rest.began_ns, rest.woke_ns)
            && !rest.is_only_waiting()
            && !rest.follows_a_stop();
        if was_interrupted || !is_idle {
            turn_began_ns
        } else {
            rest.unread_since_ns()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: Rest = Rest {
        began_ns: 1_000_000,
        turn_seen_ns: 990_000,
        alarm_ns: 90_000_000,
        woke_ns: 50_000_000,
        waited_ns: Some(0),
    };

    #[test]
    fn input_after_a_rest_has_just_arrived() {
        assert_eq!(REST.unread_since_ns(), 50_000_000);
    }

    #[test]
    fn a_wait_for_a_core_after_a_rest_counts() {
        let waited = |waited_ns| Rest {
            waited_ns: Some(waited_ns),
            ..REST
        };
        assert_eq!(waited(8_000_000).unread_since_ns(), 42_000_000);
        // Before the rest all sockets were empty.
        assert_eq!(waited(60_000_000).unread_since_ns(), 1_000_000);
    }

    #[test]
    fn without_an_account_input_may_have_arrived_at_the_start_of_the_rest() {
        let unknown = Rest {
            waited_ns: None,
            ..REST
        };
        assert_eq!(unknown.unread_since_ns(), 1_000_000);
    }

    #[test]
    fn a_thread_that_missed_its_alarm_was_stopped() {
        let late = |woke_ns, waited_ns| Rest {
            woke_ns,
            waited_ns: Some(waited_ns),
            ..REST
        };
        assert_eq!(late(90_900_000, 0).unread_since_ns(), 90_900_000);
        assert_eq!(late(300_000_000, 0).unread_since_ns(), 1_000_000);
        assert_eq!(late(300_000_000, 210_000_000).unread_since_ns(), 90_000_000);
    }

    #[test]
    fn a_rest_without_sleep_is_none() {
        let mut waits = Waits::new(500);
        let only_waited = Rest {
            waited_ns: Some(60_000_000),
            ..REST
        };
        assert_eq!(waits.begin_turn(only_waited), 500);
        // It was stopped for 300 ms at the end of a turn, and found input at once.
        let mut waits = Waits::new(500);
        let stopped = Rest {
            began_ns: 301_000_000,
            woke_ns: 301_400_000,
            alarm_ns: 401_000_000,
            ..REST
        };
        assert_eq!(waits.begin_turn(stopped), 500);
        // A rest that is longer than the stop had no input at its beginning.
        let mut waits = Waits::new(500);
        let long = Rest {
            woke_ns: 901_000_000,
            alarm_ns: 901_000_000,
            ..stopped
        };
        assert_eq!(waits.begin_turn(long), 901_000_000);
    }

    #[test]
    fn an_interruption_counts_for_the_next_turn_alone() {
        let mut waits = Waits::new(500);
        waits.interrupt();
        let short = Rest {
            woke_ns: REST.began_ns + 10,
            ..REST
        };
        assert_eq!(waits.begin_turn(short), 500);
        // Before a wait that was not idle there was input already.
        assert_eq!(waits.begin_turn(short), short.woke_ns);
        waits.interrupt();
        assert_eq!(waits.begin_turn(short), short.woke_ns);
        assert_eq!(waits.begin_turn(REST), REST.woke_ns);
        waits.interrupt();
        assert_eq!(waits.begin_turn(REST), REST.woke_ns);
    }

    #[test]
    fn the_account_of_a_thread_grows_by_its_waits() {
        let mut queue = RunQueue::of_this_thread();
        // A kernel without the account gives none.
        if queue.schedstat.is_some() {
            let first = queue.wait_since_last_call();
            assert!(first.is_some_and(|waited_ns| waited_ns < 60_000_000_000));
        }
    }
}
