//! The threads of a relay send each other subscriptions and departures. Messages need no other
//! thread.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use super::route::{Route, Target};
use super::shared_socket::SharedSocket;

/// News of a connection for the threads that it does not belong to.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Subscribed {
        route: Route,
        target: Target,
        socket: Arc<SharedSocket>,
    },
    Unsubscribed {
        route: Route,
        client: u32,
    },
    /// It has ended, after all of its subscriptions.
    Left {
        client: u32,
    },
}

/// All threads.
#[derive(Debug)]
pub(super) struct ThreadGroup {
    inboxes: Vec<Inbox>,
    is_stopped: AtomicBool,
}

#[derive(Debug)]
struct Inbox {
    /// Guards the news that the thread has not read; held only to add or to take them. Adding to an
    /// empty inbox wakes the thread, so the inbox holds only what arrives while it is busy.
    changes: Mutex<Vec<Change>>,
    /// There are some.
    has_changes: AtomicBool,
    /// Wakes the thread.
    waker: OwnedFd,
}

impl ThreadGroup {
    /// # Errors
    /// The kernel gives no event counter.
    pub(super) fn new(threads: u16) -> io::Result<Self> {
        let inboxes = (0..threads).map(|_| Inbox::new());
        Ok(Self {
            inboxes: inboxes.collect::<io::Result<_>>()?,
            is_stopped: AtomicBool::new(false),
        })
    }

    pub(super) fn threads(&self) -> u16 {
        u16::try_from(self.inboxes.len()).unwrap_or(u16::MAX)
    }

    /// Becomes readable when there is new work for a thread.
    pub(super) fn waker(&self, thread: u16) -> &OwnedFd {
        &self.inboxes[usize::from(thread)].waker
    }

    /// Tells all threads but one.
    pub(super) fn tell_others(&self, thread: u16, change: &Change) {
        for (number, inbox) in self.inboxes.iter().enumerate() {
            if number != usize::from(thread) {
                inbox.add(change.clone());
            }
        }
    }

    /// Whether there is new work for a thread.
    #[inline]
    pub(super) fn has_changes(&self, thread: u16) -> bool {
        let inbox = &self.inboxes[usize::from(thread)];
        inbox.has_changes.load(Ordering::Acquire)
    }

    /// Takes the news for a thread.
    pub(super) fn take_changes(&self, thread: u16) -> Vec<Change> {
        let inbox = &self.inboxes[usize::from(thread)];
        let mut changes = inbox.changes.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.has_changes.store(false, Ordering::Release);
        std::mem::take(&mut changes)
    }

    /// Ends all threads.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        for inbox in &self.inboxes {
            inbox.wake();
        }
    }

    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }
}

impl Inbox {
    fn new() -> io::Result<Self> {
        Ok(Self {
            changes: Mutex::default(),
            has_changes: AtomicBool::new(false),
            waker: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
        })
    }

    fn add(&self, change: Change) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = changes.is_empty();
        changes.push(change);
        self.has_changes.store(true, Ordering::Release);
        drop(changes);
        if was_empty {
            self.wake();
        }
    }

    /// Edge-triggered, each addition is an event; the counter is never read.
    fn wake(&self) {
        // It fails only if the counter is full, after 2^64 additions.
        rustix::io::write(&self.waker, &1_u64.to_ne_bytes()).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_reach_the_other_threads_in_order() {
        let group = ThreadGroup::new(3).unwrap();
        assert!(!group.has_changes(0));
        for client in [4, 7] {
            group.tell_others(1, &Change::Left { client });
        }
        assert!(group.has_changes(0) && !group.has_changes(1) && group.has_changes(2));
        let clients: Vec<u32> = group
            .take_changes(2)
            .into_iter()
            .map(|change| match change {
                Change::Left { client } => client,
                Change::Subscribed { .. } | Change::Unsubscribed { .. } => unreachable!(),
            })
            .collect();
        assert_eq!(clients, [4, 7]);
        assert!(!group.has_changes(2) && group.has_changes(0));
        assert_eq!(group.take_changes(1).len(), 0);
    }

    #[test]
    fn only_the_first_of_several_news_wakes_a_thread() {
        let group = ThreadGroup::new(2).unwrap();
        let woken = || {
            let mut count = [0; 8];
            rustix::io::read(group.waker(1), &mut count).map_or(0, |_| u64::from_ne_bytes(count))
        };
        group.tell_others(0, &Change::Left { client: 1 });
        group.tell_others(0, &Change::Left { client: 2 });
        assert_eq!(woken(), 1);
        group.take_changes(1);
        group.tell_others(0, &Change::Left { client: 3 });
        assert_eq!(woken(), 1);
        group.stop();
        assert!(group.is_stopped());
        assert_eq!(woken(), 1);
    }
}
