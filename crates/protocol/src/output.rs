//! What waits to be sent to one client: bytes of its own, and payloads that it shares with other clients.

use alloc::boxed::Box;
use alloc::collections::{VecDeque, vec_deque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::Message;

/// Payloads of this many bytes and more are shared; to copy a smaller one costs less than to keep account of it
/// (docs/decisions/0011-shared-payloads.md has the measurement).
pub(crate) const SHARED_PAYLOAD_BYTES_MIN: usize = 2048;

/// Output of one connection: a queue of bytes that the session machine appends to and the connection takes from.
///
/// Everything small stands in one buffer. A large payload that more than one client gets is not copied: the queue
/// holds a reference to the [`Message`] and the place among the other bytes where its payload belongs.
#[derive(Debug, Default)]
pub struct Output {
    /// The bytes that are this connection's own, in order.
    own: Vec<u8>,
    /// Payloads that stand among them; nothing until there is one, as most connections never have one.
    shared: Option<Box<Shared>>,
}

/// The payloads among the bytes of an output.
#[derive(Debug, Default)]
struct Shared {
    chunks: VecDeque<Chunk>,
    /// Bytes of the chunks that are still to be sent.
    len: usize,
    /// Bytes of the first chunk that have been sent.
    sent: usize,
    /// Own bytes in front of the last chunk.
    own_before: usize,
}

/// The payload of a message.
#[derive(Debug)]
struct Chunk {
    /// Own bytes between the chunk before and this one.
    gap: usize,
    message: Arc<Message>,
}

/// The bytes of an [`Output`] in order, in pieces that are each contiguous and not empty.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    own: &'a [u8],
    chunks: vec_deque::Iter<'a, Chunk>,
    /// Bytes of the next chunk that have been sent.
    sent: usize,
    /// A chunk's payload, when the own bytes in front of it were given out.
    next: Option<&'a [u8]>,
}

impl Output {
    /// Empty, without memory.
    pub const fn new() -> Self {
        Self {
            own: Vec::new(),
            shared: None,
        }
    }

    /// Bytes that wait, those of shared payloads included.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.shared {
            None => self.own.len(),
            Some(shared) => self.own.len() + shared.len,
        }
    }

    /// Nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.shared.as_ref().is_none_or(|shared| shared.len == 0)
    }

    /// Memory in bytes that stays with it when it is empty.
    #[inline]
    pub fn capacity(&self) -> usize {
        match &self.shared {
            None => self.own.capacity(),
            Some(shared) => self.own.capacity() + shared.capacity(),
        }
    }

    /// Everything that waits, if it stands in one piece; none while a shared payload is in it.
    #[inline]
    pub fn as_contiguous(&self) -> Option<&[u8]> {
        match &self.shared {
            Some(shared) if !shared.chunks.is_empty() => None,
            _ => Some(&self.own),
        }
    }

    /// Everything that waits, piece by piece: for a vectored write, or for a layer that encrypts.
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

    /// A copy of everything that waits, in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        for piece in self.pieces() {
            bytes.extend_from_slice(piece);
        }
        bytes
    }

    /// The first `len` bytes were taken; payloads that are through are let go.
    pub fn advance(&mut self, len: usize) {
        if len >= self.len() {
            self.clear();
            return;
        }
        let own = match self.shared.as_deref_mut() {
            Some(shared) if !shared.chunks.is_empty() => shared.advance(len),
            _ => len,
        };
        self.own.drain(..own);
    }

    /// Throws everything away and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.own.clear();
        if let Some(shared) = &mut self.shared {
            shared.clear();
        }
    }

    /// Moves everything that waits in another output behind what waits here; payloads that it shares stay shared.
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
                    // Only the first payload of an output can be half sent.
                    sent => self.own.extend_from_slice(&chunk.message.payload()[sent..]),
                }
            }
        }
        self.own.extend_from_slice(own);
    }

    /// The connection's own bytes, to append to; what stood there before the call must stay.
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

    /// Lets go of what is within the next `len` bytes and returns how many of these are own ones.
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

#[cfg(test)]
mod tests {

    use proptest::prelude::*;
    use thrum_codec::QoS;
    use thrum_codec::properties::PublishProperties;

    use super::*;
    use crate::Publication;

    fn message(payload: &[u8]) -> Arc<Message> {
        Arc::new(Message::new(&Publication {
            topic: "not to be sent",
            payload,
            properties: PublishProperties::default(),
            qos: QoS::AtMostOnce,
            retain: false,
            expires_at: None,
            publisher: 0,
        }))
    }

    /// What is done to an output.
    #[derive(Clone, Debug)]
    enum Step {
        Append(Vec<u8>),
        Share(Vec<u8>),
        Advance(usize),
        Clear,
        /// Another output, to which all this was done, is appended.
        Join(Vec<Self>),
    }

    fn step() -> impl Strategy<Value = Step> + Clone {
        let bytes = || proptest::collection::vec(any::<u8>(), 1..9);
        prop_oneof![
            6 => bytes().prop_map(Step::Append),
            6 => bytes().prop_map(Step::Share),
            6 => (0_usize..30).prop_map(Step::Advance),
            1 => Just(Step::Clear),
        ]
    }

    fn step_or_join() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => step(),
            1 => proptest::collection::vec(step(), 0..12).prop_map(Step::Join),
        ]
    }

    /// An output, and the plain bytes that it stands for.
    #[derive(Default)]
    struct Pair {
        output: Output,
        plain: Vec<u8>,
    }

    impl Pair {
        fn new(steps: &[Step]) -> Self {
            let mut pair = Self::default();
            for step in steps {
                pair.step(step);
            }
            pair
        }

        fn step(&mut self, step: &Step) {
            match step {
                Step::Append(bytes) => {
                    self.output.own().extend_from_slice(bytes);
                    self.plain.extend_from_slice(bytes);
                }
                Step::Share(payload) => {
                    self.output.share(&message(payload));
                    self.plain.extend_from_slice(payload);
                }
                Step::Advance(len) => {
                    self.output.advance(*len);
                    self.plain.drain(..(*len).min(self.plain.len()));
                }
                Step::Clear => {
                    self.output.clear();
                    self.plain.clear();
                }
                Step::Join(steps) => {
                    let other = Self::new(steps);
                    self.output.append(other.output);
                    self.plain.extend(other.plain);
                }
            }
        }

        fn check(&self) {
            let Self { output, plain } = self;
            assert_eq!(output.to_vec(), *plain);
            assert_eq!(
                (output.len(), output.is_empty()),
                (plain.len(), plain.is_empty())
            );
            assert!(output.pieces().all(|piece| !piece.is_empty()));
            let has_shared = output.shared.as_ref().is_some_and(|shared| shared.len > 0);
            assert_eq!(output.as_contiguous(), (!has_shared).then_some(&plain[..]));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn an_output_is_the_bytes_that_were_put_in(steps in proptest::collection::vec(step_or_join(), 1..60)) {
            let mut pair = Pair::default();
            for step in &steps {
                pair.step(step);
                pair.check();
            }
        }
    }

    #[test]
    fn two_writes_may_end_at_any_byte() {
        let append = |bytes: &[u8]| Step::Append(bytes.to_vec());
        let share = |payload: &[u8]| Step::Share(payload.to_vec());
        let steps = [
            append(b"head"),
            share(b"first"),
            share(b"second"),
            append(b"own"),
            append(b"more"),
            share(b"third"),
            append(b"tail"),
        ];
        let len = Pair::new(&steps).plain.len();
        for first in 0..=len {
            for second in 0..=len - first {
                let mut pair = Pair::new(&steps);
                pair.step(&Step::Advance(first));
                pair.check();
                // What comes in between stands behind the rest.
                pair.step(&append(b"new"));
                pair.step(&share(b"fourth"));
                pair.check();
                pair.step(&Step::Advance(second));
                pair.check();
            }
        }
    }

    #[test]
    fn a_payload_is_let_go_with_its_last_byte() {
        let payload = message(b"payload");
        let mut output = Output::new();
        output.own().extend_from_slice(b"head");
        output.share(&payload);
        output.own().push(0);
        assert_eq!(Arc::strong_count(&payload), 2);
        output.advance(10);
        assert_eq!(Arc::strong_count(&payload), 2);
        output.advance(1);
        assert_eq!(Arc::strong_count(&payload), 1);
        assert_eq!(output.as_contiguous(), Some(&[0][..]));
    }

    #[test]
    fn a_payload_is_sent_from_where_the_message_has_it() {
        let payload = message(b"payload");
        let mut output = Output::new();
        output.share(&payload);
        let pieces: Vec<_> = output.pieces().map(<[u8]>::as_ptr).collect();
        assert_eq!(pieces, [payload.payload().as_ptr()]);
    }

    #[test]
    fn an_output_without_memory_takes_that_of_the_appended_one() {
        let mut other = Output::new();
        other.own().extend_from_slice(b"held back");
        let place = other.own().as_ptr();
        let mut output = Output::new();
        output.append(other);
        assert_eq!(output.own().as_ptr(), place);
        output.append(Output::new());
        assert_eq!(output.to_vec(), b"held back");
    }

    #[test]
    fn capacity_tells_all_memory_that_an_emptied_output_keeps() {
        let mut output = Output::new();
        assert_eq!(output.capacity(), 0);
        output.own().extend_from_slice(&[0; 100]);
        assert!((100..200).contains(&output.capacity()));
        let payload = message(b"payload");
        for _ in 0..1000 {
            output.share(&payload);
        }
        output.advance(usize::MAX);
        assert!(output.is_empty());
        assert!(output.capacity() >= 16_000);
    }
}
