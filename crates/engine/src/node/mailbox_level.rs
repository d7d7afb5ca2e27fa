//! Fill level of the mailbox of a worker. The mailbox itself, which wakes its worker, belongs to
//! the shell.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Limits of a mailbox.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Number of pieces of mail at which the mailbox is full.
    pub messages: usize,
    /// Bytes of messages at which the mailbox is full.
    pub bytes: usize,
}

/// Remaining capacity of a mailbox.
#[derive(Clone, Copy, Debug, Default)]
pub struct Room {
    messages: usize,
    bytes: usize,
}

impl Room {
    /// Subtracts a piece of mail of that many bytes.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) {
        self.messages = self.messages.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Whether there is no capacity for one more piece.
    #[inline]
    pub(crate) fn is_used_up(self) -> bool {
        self.messages == 0 || self.bytes == 0
    }
}

/// Mail that waits in the mailbox of one worker or is being handled, and the capacity of the
/// mailbox.
#[derive(Debug)]
pub struct MailboxLevel {
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
    capacity: Capacity,
}

impl MailboxLevel {
    /// Creates the level of an empty mailbox.
    pub const fn new(capacity: Capacity) -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            capacity,
        }
    }

    /// Adds mail to the level. The mailbox calls it before the mail can be taken.
    #[inline]
    pub fn rise(&self, messages: usize, bytes: usize) {
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.waiting.fetch_add(messages, Ordering::Release);
    }

    /// Subtracts mail that was handled.
    #[inline]
    pub fn fall(&self, messages: usize, bytes: usize) {
        self.waiting.fetch_sub(messages, Ordering::Relaxed);
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether no mail waits or is being handled.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }

    /// The remaining capacity of the mailbox.
    #[inline]
    pub fn room(&self) -> Room {
        let (messages, bytes) = self.waiting();
        Room {
            messages: self.capacity.messages.saturating_sub(messages),
            bytes: self.capacity.bytes.saturating_sub(bytes),
        }
    }

    /// Whether the mailbox is at or over its limit, so that the publishers that fill it are not
    /// read.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.room().is_used_up()
    }

    /// Whether the mailbox is over half of its limit, so that publishers that wait for it continue
    /// to wait.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        let (messages, bytes) = self.waiting();
        messages > self.capacity.messages / 2 || bytes > self.capacity.bytes / 2
    }

    /// Messages and bytes that wait or are being handled. The numbers include all mail that was
    /// pushed before the release of a lock that the caller has acquired since.
    #[inline]
    pub fn waiting(&self) -> (usize, usize) {
        let messages = self.waiting.load(Ordering::Relaxed);
        (messages, self.waiting_bytes.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_is_crowded_above_half_of_either_limit_and_full_at_it() {
        let capacity = Capacity {
            messages: 4,
            bytes: 1_000,
        };
        let level = MailboxLevel::new(capacity);
        let found = [false; 4].map(|_| {
            level.rise(1, 0);
            (level.is_crowded(), level.is_full())
        });
        assert_eq!(
            found,
            [(false, false), (false, false), (true, false), (true, true)]
        );
        assert!(!level.is_empty());
        level.fall(4, 0);
        assert!(level.is_empty());
        let found = [500, 1, 499].map(|bytes| {
            level.rise(1, bytes);
            (level.is_crowded(), level.is_full())
        });
        assert_eq!(found, [(false, false), (true, false), (true, true)]);
    }

    #[test]
    fn mail_uses_the_remaining_capacity() {
        let capacity = Capacity {
            messages: 3,
            bytes: 10,
        };
        let mut room = MailboxLevel::new(capacity).room();
        room.take(9);
        assert!(!room.is_used_up());
        let mut small = room;
        small.take(0);
        assert!(!small.is_used_up());
        small.take(0);
        assert!(small.is_used_up(), "by the number of pieces");
        room.take(2);
        assert!(room.is_used_up(), "by their bytes");
    }
}
