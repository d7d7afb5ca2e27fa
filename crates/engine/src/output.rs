//! Output for the client of one connection. The edge takes it from here and writes it to the
//! socket.

use thrum_protocol::Output;

use crate::durable::HeldOutput;
use crate::ids::Slot;

/// Buffers that no connection uses.
pub(super) type BufferPool = Vec<Box<Output>>;

/// The output of one connection.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent states of one output; each is one byte"
)]
pub struct ConnectionOutput {
    /// Output of earlier turns that the socket has not accepted, followed by the output of this
    /// turn; none if there is no output, as for most connections.
    fresh: Option<Box<Output>>,
    /// Output of earlier turns that waits for the storage; `fresh` follows it.
    held: Option<Box<HeldOutput>>,
    /// Number of bytes at the front of `fresh` from earlier turns: they depend on no change, and
    /// end with a packet. 32 bits keep a connection small; the limits of the output are far below.
    left: u32,
    /// Number that differs from that of earlier connections in the same place.
    serial: u32,
    /// The session of the connection; none before it is admitted and after it has ended.
    session: Option<Slot>,
    /// The connection is listed to be written at the end of the turn.
    pub(super) is_listed: bool,
    /// The output of this turn depends on changes of this turn.
    depends: bool,
    /// The CONNACK of the session depends on no change any longer: it is written or will be.
    is_connack_released: bool,
    /// The output exceeds its soft limit, and the session queues messages meanwhile.
    pub is_congested: bool,
    /// Stamped messages of the connection are followed ([`crate::stages`]).
    pub is_followed: bool,
    /// Some output was dropped: positions in it have lost their meaning, and no message of the
    /// connection is followed any longer.
    pub(super) is_cut: bool,
}

impl ConnectionOutput {
    /// Creates the empty output of a connection with that serial number.
    pub fn new(serial: u32) -> Self {
        Self {
            serial,
            ..Self::default()
        }
    }

    /// Number that differs from that of earlier connections in the same place.
    #[inline]
    pub const fn serial(&self) -> u32 {
        self.serial
    }

    /// Returns the buffer to write into, which is taken from the pool if there is none.
    #[inline]
    pub(super) fn buffer(&mut self, pool: &mut BufferPool) -> &mut Output {
        let spare = || pool.pop().unwrap_or_default();
        self.fresh.get_or_insert_with(spare)
    }

    /// Whether there is a buffer, empty or not.
    #[inline]
    pub(super) const fn has_buffer(&self) -> bool {
        self.fresh.is_some()
    }

    /// Takes the buffer if it is empty.
    #[inline]
    pub fn take_spare(&mut self) -> Option<Box<Output>> {
        self.fresh.take_if(|out| out.is_empty())
    }

    /// Returns the buffer of a closed connection, emptied.
    pub(super) fn into_spare(self) -> Option<Box<Output>> {
        let mut spare = self.fresh?;
        spare.clear();
        Some(spare)
    }

    /// Marks the output of this turn as dependent on its changes; false if it was marked already.
    #[inline]
    pub(super) fn depend(&mut self) -> bool {
        !std::mem::replace(&mut self.depends, true)
    }

    /// Whether the output depends on changes that are not submitted yet.
    #[inline]
    pub const fn depends(&self) -> bool {
        self.depends
    }

    /// Clears the mark of dependent output when the changes are submitted, and returns it.
    pub(super) fn take_depends(&mut self) -> bool {
        std::mem::take(&mut self.depends)
    }

    /// The output that may be sent now; none if there is none.
    #[inline]
    pub fn sendable(&mut self) -> Option<&mut Output> {
        self.join_held();
        self.is_connack_released |= self.held.is_none();
        match &mut self.held {
            Some(held) => Some(&mut held.ready),
            None => self.fresh.as_deref_mut(),
        }
    }

    /// Records where the output of the next turn begins, after output was sent.
    #[inline]
    pub fn was_sent(&mut self) {
        let left = self.fresh.as_ref().map_or(0, |out| out.len());
        self.left = u32::try_from(left).expect("the limits of the output are far below");
    }

    /// Moves the output of this turn behind the held output, and ends the holding if no output
    /// waits.
    #[inline]
    fn join_held(&mut self) {
        let Some(held) = &mut self.held else { return };
        if let Some(out) = self.fresh.take() {
            held.queue_behind(*out);
        }
        if held.is_free() {
            self.fresh = Some(Box::new(std::mem::take(&mut held.ready)));
            self.held = None;
        }
    }

    /// Number of bytes that wait for the socket or for the storage.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.fresh.as_ref().map_or(0, |out| out.len()) + self.held()
    }

    /// Number of bytes in front of the buffer, which wait for the storage or behind such.
    #[inline]
    pub fn held(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.bytes_len())
    }

    /// Number of bytes in front of those that wait for the storage; none if no output waits.
    pub(crate) fn ready(&self) -> Option<usize> {
        let held = self.held.as_ref().filter(|held| !held.is_free())?;
        Some(held.ready.len())
    }

    /// Holds the output of a turn. Output of earlier turns may still be sent, and a packet of it
    /// may be partly sent.
    pub(super) fn hold(&mut self, turn: u64) {
        let out = self.take_new();
        let left = self.fresh.take();
        self.left = 0;
        let held = self.held.get_or_insert_default();
        if let Some(left) = left {
            held.ready.append(*left);
        }
        held.hold(turn, out);
    }

    /// Takes the output of this turn.
    fn take_new(&mut self) -> Output {
        match (self.left, &mut self.fresh) {
            (_, None) => Output::new(),
            (0, out) => out.take().map_or_else(Output::new, |out| *out),
            (left, Some(out)) => out.split_off(left as usize),
        }
    }

    /// Releases the output of all turns up to this one.
    pub(super) fn release(&mut self, turn: u64) {
        if let Some(held) = &mut self.held {
            self.is_connack_released |= held.release(turn);
        }
    }

    /// Assigns the connection to a session, whose CONNACK is part of the output of this turn.
    pub fn begin_session(&mut self, session: Slot) {
        self.session = Some(session);
        self.is_connack_released = false;
    }

    /// Removes the session of a connection that ends.
    pub fn end_session(&mut self) {
        self.session = None;
    }

    /// The session of the connection; none before it is admitted and after it has ended.
    #[inline]
    pub const fn session(&self) -> Option<Slot> {
        self.session
    }

    /// Drops the output that may not be written yet, since the connection ends; true if the CONNACK
    /// was part of it. The rest ends with a whole packet, which may be partly sent.
    pub fn drop_held(&mut self) -> bool {
        let is_any = self.depends || self.held.is_some();
        self.is_cut |= is_any;
        self.is_followed &= !is_any;
        let depends = std::mem::take(&mut self.depends);
        if let Some(held) = self.held.take() {
            self.fresh = Some(Box::new(held.ready));
            self.was_sent();
        } else if depends {
            drop(self.take_new());
        }
        is_any && !self.is_connack_released
    }

    /// Records that the layers of the connection dropped output, as the client no longer takes any.
    #[cold]
    pub fn was_cut(&mut self) {
        self.is_cut = true;
        self.is_followed = false;
    }

    /// Drops all output, since the client does not read it any more.
    #[inline]
    pub fn discard(&mut self) {
        self.fresh = None;
        self.left = 0;
        self.held = None;
        self.was_cut();
    }
}
