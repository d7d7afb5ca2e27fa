//! How full the mailbox of a worker is. The mailbox itself, which wakes its worker, is the shell's.

use std::sync::atomic::{AtomicUsize, Ordering};

/// When a mailbox is full.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Pieces of mail.
    pub messages: usize,
    /// Bytes of the messages in them.
    pub bytes: usize,
}

/// What a mailbox has left.
#[derive(Clone, Copy, Debug, Default)]
pub struct Room {
    messages: usize,
    bytes: usize,
}

impl Room {
    /// A piece of mail with so many bytes goes in.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) {
        self.messages = self.messages.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// One more piece is too many.
    #[inline]
    pub(crate) fn is_used_up(self) -> bool {
        self.messages == 0 || self.bytes == 0
    }
}

/// What waits in the mailbox of one worker, or is being handled, against its capacity.
#[derive(Debug)]
pub struct MailboxLevel {
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
    capacity: Capacity,
}

impl MailboxLevel {
    /// The level of an empty mailbox.
    pub const fn new(capacity: Capacity) -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            capacity,
        }
    }

    /// So much is put in. The mailbox calls it before the mail can be taken out.
    #[inline]
    pub fn rise(&self, messages: usize, bytes: usize) {
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.waiting.fetch_add(messages, Ordering::Release);
    }

    /// So much of what was taken has been handled.
    #[inline]
    pub fn fall(&self, messages: usize, bytes: usize) {
        self.waiting.fetch_sub(messages, Ordering::Relaxed);
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// There is nothing to take.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }

    /// What the mailbox has left.
    #[inline]
    pub fn room(&self) -> Room {
        let (messages, bytes) = self.waiting();
        Room {
            messages: self.capacity.messages.saturating_sub(messages),
            bytes: self.capacity.bytes.saturating_sub(bytes),
        }
    }

    /// At or over its limit: the publishers that feed it are not read.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.room().is_used_up()
    }

    /// Over half of its limit: publishers that wait for it wait on.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        let (messages, bytes) = self.waiting();
        messages > self.capacity.messages / 2 || bytes > self.capacity.bytes / 2
    }

    /// Messages and bytes that wait, or are being handled. Certain for what was pushed before a
    /// lock was given back that the asker has taken since.
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
        level.fall(4, 0);
        assert!(level.is_empty());
        let found = [500, 1, 499].map(|bytes| {
            level.rise(1, bytes);
            (level.is_crowded(), level.is_full())
        });
        assert_eq!(found, [(false, false), (true, false), (true, true)]);
    }

    #[test]
    fn what_goes_in_uses_the_room_up() {
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
