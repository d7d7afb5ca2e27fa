//! Output to be sent to one client: bytes of its own, and payloads that it shares with other
//! clients.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::{VecDeque, vec_deque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::Message;

/// Payloads of at least this many bytes are shared; copying a smaller one costs less than the
/// bookkeeping (docs/decisions/0011-shared-payloads.md has the measurement).
pub(crate) const SHARED_PAYLOAD_BYTES_MIN: usize = 2048;

/// Output of one connection: a byte queue that the session appends to and the connection writes
/// from.
///
/// Small parts are in one buffer. A large payload with more than one receiver is not copied: the
/// queue contains a reference to the [`Message`] and the position of its payload among the other
/// bytes.
#[derive(Debug, Default)]
pub struct Output {
    /// The connection's own bytes, in order.
    own: Vec<u8>,
    /// Shared payloads between them; allocated with the first one, because most connections have
    /// none.
    shared: Option<Box<Shared>>,
}

/// The shared payloads of an output.
#[derive(Debug, Default)]
struct Shared {
    chunks: VecDeque<Chunk>,
    /// Number of unsent bytes in the chunks.
    len: usize,
    /// Number of bytes of the first chunk that have been sent.
    sent: usize,
    /// Number of own bytes before the last chunk.
    own_before: usize,
}

/// The payload of a message.
#[derive(Debug)]
struct Chunk {
    /// Number of own bytes between the previous chunk and this one.
    gap: usize,
    message: Arc<Message>,
}

/// The bytes of an [`Output`] in order, as contiguous, non-empty pieces.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    own: &'a [u8],
    chunks: vec_deque::Iter<'a, Chunk>,
    /// Number of bytes of the next chunk that have been sent.
    sent: usize,
    /// The payload of a chunk whose preceding own bytes were returned.
    next: Option<&'a [u8]>,
}

impl Output {
    /// Creates an empty output without allocated memory.
    pub const fn new() -> Self {
        Self {
            own: Vec::new(),
            shared: None,
        }
    }

    /// Number of unsent bytes, including those of shared payloads.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.shared {
            None => self.own.len(),
            Some(shared) => self.own.len() + shared.len,
        }
    }

    /// Whether there are no unsent bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.shared.as_ref().is_none_or(|shared| shared.len == 0)
    }

    /// Memory in bytes that the output keeps when it is empty.
    #[inline]
    pub fn capacity(&self) -> usize {
        match &self.shared {
            None => self.own.capacity(),
            Some(shared) => self.own.capacity() + shared.capacity(),
        }
    }

    /// All unsent bytes, if they are contiguous; `None` if they include a shared payload.
    #[inline]
    pub fn as_contiguous(&self) -> Option<&[u8]> {
        match &self.shared {
            Some(shared) if !shared.chunks.is_empty() => None,
            _ => Some(&self.own),
        }
    }

    /// All unsent bytes, piece by piece: for a vectored write, or for encryption.
    pub fn pieces(&self) -> Pieces<'_> {
        let shared = self.shared.as_deref();
        Pieces {
            own: &self.own,
            chunks: shared
                .map(|shared| shared.chunks.iter())
                .unwrap_or_default(),
            sent: shared.map_or(0, |shared| shared.sent),
            next: None,
        }
    }

    /// A contiguous copy of all unsent bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        for piece in self.pieces() {
            bytes.extend_from_slice(piece);
        }
        bytes
    }

    /// Removes the first `len` bytes, which were written; completely written payloads are released.
    pub fn advance(&mut self, len: usize) {
        if len >= self.len() {
            self.clear();
            return;
        }
        let own = match self.shared.as_deref_mut() {
            Some(shared) => shared.advance(len),
            None => len,
        };
        self.own.drain(..own);
    }

    /// Discards all bytes and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.own.clear();
        if let Some(shared) = &mut self.shared {
            shared.clear();
        }
    }

    /// Moves all unsent bytes of another output to the end of this one; shared payloads stay
    /// shared.
    pub fn append(&mut self, other: Self) {
        if self.capacity() == 0 {
            *self = other;
            return;
        }
        let mut own = other.own.as_slice();
        if let Some(shared) = other.shared {
            let mut sent = shared.sent;
            for chunk in shared.chunks {
                let (gap, behind) = own.split_at(chunk.gap);
                own = behind;
                self.own.extend_from_slice(gap);
                match core::mem::take(&mut sent) {
                    0 => self.push(chunk.message),
                    // Only the first payload of an output can be partly sent.
                    sent => self.own.extend_from_slice(&chunk.message.payload()[sent..]),
                }
            }
        }
        self.own.extend_from_slice(own);
    }

    /// Removes and returns the bytes after the first `len`; payloads that are not split stay
    /// shared.
    #[must_use]
    pub fn split_off(&mut self, len: usize) -> Self {
        let whole = core::mem::take(self);
        let mut behind = Self::new();
        let mut left = len;
        let mut own = whole.own.as_slice();
        let shared = whole.shared.unwrap_or_default();
        let mut sent = shared.sent;
        for chunk in shared.chunks {
            let (gap, rest) = own.split_at(chunk.gap);
            own = rest;
            self.divide(&mut behind, gap, &mut left);
            let sent = core::mem::take(&mut sent);
            let payload = &chunk.message.payload()[sent..];
            if sent > 0 || (1..payload.len()).contains(&left) {
                self.divide(&mut behind, payload, &mut left);
            } else if left == 0 {
                behind.push(chunk.message);
            } else {
                left -= payload.len();
                self.push(chunk.message);
            }
        }
        self.divide(&mut behind, own, &mut left);
        behind
    }

    /// Appends the first part of the bytes to this output and the rest to another one.
    fn divide(&mut self, behind: &mut Self, bytes: &[u8], left: &mut usize) {
        let (front, back) = bytes.split_at(bytes.len().min(*left));
        *left -= front.len();
        self.own.extend_from_slice(front);
        behind.own.extend_from_slice(back);
    }

    /// The connection's own bytes, to append to; the caller must not change the existing bytes.
    #[inline]
    pub(crate) fn own(&mut self) -> &mut Vec<u8> {
        &mut self.own
    }

    /// Appends the payload of a message without copying it.
    pub(crate) fn share(&mut self, message: &Arc<Message>) {
        self.push(Arc::clone(message));
    }

    fn push(&mut self, message: Arc<Message>) {
        let shared = self.shared.get_or_insert_default();
        shared.push(self.own.len(), message);
    }
}

impl Shared {
    fn capacity(&self) -> usize {
        size_of::<Self>() + self.chunks.capacity() * size_of::<Chunk>()
    }

    fn push(&mut self, own_len: usize, message: Arc<Message>) {
        let gap = own_len - self.own_before;
        self.own_before = own_len;
        self.len += message.payload().len();
        self.chunks.push_back(Chunk { gap, message });
    }

    /// Releases the chunks within the next `len` bytes and returns how many of these bytes are own
    /// ones.
    fn advance(&mut self, len: usize) -> usize {
        let mut rest = len;
        let mut own = 0;
        while let Some(first) = self.chunks.front_mut() {
            let gap = first.gap.min(rest);
            first.gap -= gap;
            own += gap;
            rest -= gap;
            let waiting = first.message.payload().len() - self.sent;
            if first.gap > 0 || rest < waiting {
                self.sent += rest;
                self.len -= rest;
                self.own_before -= own;
                return own;
            }
            rest -= waiting;
            self.len -= waiting;
            self.sent = 0;
            self.chunks.pop_front();
        }
        self.own_before = 0;
        own + rest
    }

    fn clear(&mut self) {
        self.chunks.clear();
        self.len = 0;
        self.sent = 0;
        self.own_before = 0;
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if let Some(payload) = self.next.take() {
            return Some(payload);
        }
        let Some(chunk) = self.chunks.next() else {
            let rest = core::mem::take(&mut self.own);
            return (!rest.is_empty()).then_some(rest);
        };
        let sent = core::mem::take(&mut self.sent);
        let (_, payload) = chunk.message.payload().split_at(sent);
        let (gap, behind) = self.own.split_at(chunk.gap);
        self.own = behind;
        if gap.is_empty() {
            return Some(payload);
        }
        self.next = Some(payload);
        Some(gap)
    }
}
