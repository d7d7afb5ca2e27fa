//! The socket of a connection: its own thread reads it, every thread may write to it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

/// Output that waits for a socket: above it no messages are relayed to the connection. A whole
/// second of a fan-out of 1 000 messages/s of 8 KiB.
const UNSENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Above it the connection is cut: it does not even read the answers that it asks for.
const CUT_BYTES: usize = 4 * UNSENT_BYTES_MAX;

/// A buffer above this size is freed when its contents have been sent.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// A connection as all threads see it.
#[derive(Debug)]
pub(super) struct SharedSocket {
    socket: OwnedFd,
    /// Guards what the socket did not take. It is held while the socket is written to, so that the
    /// output of threads does not mix.
    unsent: Mutex<Unsent>,
    has_unsent: AtomicBool,
    is_full: AtomicBool,
    was_cut: AtomicBool,
}

#[derive(Debug, Default)]
struct Unsent {
    bytes: Vec<u8>,
    /// Number of these that are sent.
    sent: usize,
}

impl SharedSocket {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            unsent: Mutex::default(),
            has_unsent: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            was_cut: AtomicBool::new(false),
        }
    }

    /// Too much waits for the socket already.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// The connection was ended here because it did not read.
    pub(super) fn was_cut(&self) -> bool {
        self.was_cut.load(Ordering::Relaxed)
    }

    /// One read into what is free of a buffer; 0 at the end of the stream.
    #[inline]
    pub(super) fn receive(&self, buffer: &mut Vec<u8>) -> Result<usize, Errno> {
        loop {
            // A plain system call: that of the C library is a point where threads may be cancelled,
            // which has a cost.
            match rustix::net::recv(&self.socket, spare_capacity(buffer), RecvFlags::empty()) {
                Ok((read, _)) => return Ok(read),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// One write of these bytes, or none if others wait before them; returns the writes. Bytes that
    /// the socket does not take wait until it is writable.
    #[inline]
    pub(super) fn send(&self, bytes: &[u8]) -> u64 {
        self.send_locked(self.lock(), bytes)
    }

    /// Likewise; none if another thread is just writing.
    #[inline]
    pub(super) fn try_send(&self, bytes: &[u8]) -> Option<u64> {
        let unsent = match self.unsent.try_lock() {
            Ok(unsent) => unsent,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(self.send_locked(unsent, bytes))
    }

    #[inline]
    fn send_locked(&self, mut unsent: MutexGuard<'_, Unsent>, bytes: &[u8]) -> u64 {
        if !unsent.bytes.is_empty() {
            unsent.bytes.extend_from_slice(bytes);
            self.note(&unsent);
            return 0;
        }
        let taken = self.offer(bytes);
        if taken == bytes.len() {
            return 1;
        }
        unsent.bytes.extend_from_slice(&bytes[taken..]);
        // The socket may have become writable since, and its thread may have looked here already.
        // If it takes nothing now either, it becomes writable after this and that thread sees it.
        self.has_unsent.store(true, Ordering::SeqCst);
        1 + self.drain(&mut unsent)
    }

    /// The socket is writable: writes what waits, once; returns the writes.
    #[inline]
    pub(super) fn send_unsent(&self) -> u64 {
        if !self.has_unsent.load(Ordering::SeqCst) {
            return 0;
        }
        let mut unsent = self.lock();
        self.drain(&mut unsent)
    }

    /// Ends the connection in both directions: the peer sees it at once, its thread when it reads.
    pub(super) fn shut(&self) {
        self.is_full.store(true, Ordering::Relaxed);
        // The peer may have ended it before.
        rustix::net::shutdown(&self.socket, Shutdown::Both).ok();
    }

    fn drain(&self, unsent: &mut Unsent) -> u64 {
        if unsent.bytes.is_empty() {
            return 0;
        }
        let taken = self.offer(&unsent.bytes[unsent.sent..]);
        unsent.take(taken);
        self.note(unsent);
        1
    }

    /// Bytes that the socket takes. A failed connection takes all: the peer cannot read them, and
    /// the thread of the connection gets the reason from the kernel.
    fn offer(&self, bytes: &[u8]) -> usize {
        loop {
            match rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(taken) => return taken,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return 0,
                Err(_) => return bytes.len(),
            }
        }
    }

    /// Tells the threads how much waits.
    fn note(&self, unsent: &Unsent) {
        let waiting = unsent.bytes.len() - unsent.sent;
        self.has_unsent.store(waiting > 0, Ordering::SeqCst);
        let is_full = waiting > UNSENT_BYTES_MAX;
        self.is_full.store(is_full, Ordering::Relaxed);
        if waiting > CUT_BYTES {
            self.was_cut.store(true, Ordering::Relaxed);
            self.shut();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Unsent> {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for SharedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Unsent {
    /// Forgets bytes that were sent. They are moved away only when they are the greater part.
    fn take(&mut self, sent: usize) {
        self.sent += sent;
        if self.sent == self.bytes.len() {
            self.sent = 0;
            self.bytes.clear();
            if self.bytes.capacity() > KEPT_BYTES_MAX {
                self.bytes = Vec::new();
            }
        } else if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (SharedSocket, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (SharedSocket::new(ours.into()), theirs)
    }

    fn read(stream: &mut UnixStream, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        stream.read_exact(&mut read).unwrap();
        read
    }

    #[test]
    fn output_within_the_socket_buffer_is_one_write() {
        let (socket, mut peer) = pair();
        assert_eq!(socket.send(b"abc"), 1);
        assert_eq!(socket.send_unsent(), 0);
        assert_eq!(read(&mut peer, 3), b"abc");
    }

    #[test]
    fn a_socket_that_another_thread_writes_to_is_left_for_later() {
        let (socket, mut peer) = pair();
        let held = socket.lock();
        assert_eq!(socket.try_send(b"abc"), None);
        drop(held);
        assert_eq!(socket.try_send(b"abc"), Some(1));
        assert_eq!(read(&mut peer, 3), b"abc");
    }

    #[test]
    fn output_beyond_the_socket_buffer_follows_in_order() {
        let (socket, mut peer) = pair();
        let first: Vec<u8> = (0..=255).cycle().take(3_000_001).collect();
        // Not all, and then nothing.
        assert_eq!(socket.send(&first), 2);
        assert_eq!(socket.send(b"the end"), 0);
        let mut received = Vec::new();
        while received.len() < first.len() + 7 {
            let mut part = vec![0; 100_000];
            let count = peer.read(&mut part).unwrap();
            received.extend_from_slice(&part[..count]);
            socket.send_unsent();
        }
        assert_eq!(received[..first.len()], first);
        assert_eq!(received[first.len()..], *b"the end");
        assert_eq!(socket.send(b"x"), 1);
        assert_eq!(read(&mut peer, 1), b"x");
    }

    #[test]
    fn a_connection_that_does_not_read_is_full_and_then_cut() {
        let (socket, mut peer) = pair();
        let bytes = vec![0; UNSENT_BYTES_MAX];
        socket.send(&bytes);
        assert!(!socket.is_full());
        socket.send(&bytes);
        assert!(socket.is_full() && !socket.was_cut());
        for _ in 0..3 {
            socket.send(&bytes);
        }
        assert!(socket.is_full() && socket.was_cut());
        let mut rest = Vec::new();
        peer.read_to_end(&mut rest).unwrap();
        assert!(rest.len() < UNSENT_BYTES_MAX);
    }

    #[test]
    fn output_to_a_peer_that_has_gone_is_forgotten() {
        let (socket, peer) = pair();
        drop(peer);
        assert_eq!(socket.send(b"abc"), 1);
        assert_eq!(socket.send_unsent(), 0);
        assert!(!socket.is_full());
    }

    #[test]
    fn bytes_that_were_sent_are_moved_away_when_they_are_the_greater_part() {
        let mut unsent = Unsent {
            bytes: (0..10).collect(),
            sent: 0,
        };
        unsent.take(4);
        assert_eq!((unsent.bytes.len(), unsent.sent), (10, 4));
        unsent.take(3);
        assert_eq!((unsent.bytes.as_slice(), unsent.sent), (&[7, 8, 9][..], 0));
        unsent.take(3);
        assert_eq!((unsent.bytes.len(), unsent.sent), (0, 0));
    }
}
