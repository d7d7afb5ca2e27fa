//! What is to be sent to the client of one connection. The edge takes it from here and writes it.

use thrum_protocol::Output;

use crate::durable::HeldOutput;
use crate::ids::Slot;

/// Buffers that no connection has.
pub(super) type Pool = Vec<Box<Output>>;

/// Output of one connection.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent states of one output; each is one byte"
)]
pub struct ConnectionOutput {
    /// What the socket would not take of earlier turns, and behind it the output of this turn. None
    /// while there is nothing, as in most connections.
    fresh: Option<Box<Output>>,
    /// Output of earlier turns that waits for the disk; `fresh` stands behind it.
    held: Option<Box<HeldOutput>>,
    /// Bytes at the front of `fresh` that earlier turns left: they rest on nothing, and end with a
    /// packet. 32 bits keep a connection small; the limits of the output are far below.
    left: u32,
    /// Tells the connection apart from an earlier one in the same place.
    serial: u32,
    /// The session that the connection belongs to.
    session: Option<Slot>,
    /// Is in the list of connections to be written at the end of the turn.
    pub(super) is_listed: bool,
    /// The output of this turn rests on changes of this turn.
    depends: bool,
    /// The CONNACK of the session has been given free: it is written, or will be.
    is_welcomed: bool,
    /// Over the soft limit of output; the session queues meanwhile.
    pub is_congested: bool,
}

impl ConnectionOutput {
    pub fn new(serial: u32) -> Self {
        Self {
            serial,
            ..Self::default()
        }
    }

    /// What tells the connection apart from an earlier one in the same place.
    #[inline]
    pub const fn serial(&self) -> u32 {
        self.serial
    }

    /// The buffer to write into, one of the pool if there is none yet.
    #[inline]
    pub(super) fn buffer(&mut self, pool: &mut Pool) -> &mut Output {
        let spare = || pool.pop().unwrap_or_default();
        self.fresh.get_or_insert_with(spare)
    }

    /// There is a buffer, with or without something in it.
    #[inline]
    pub(super) const fn has_buffer(&self) -> bool {
        self.fresh.is_some()
    }

    /// Takes out the buffer if nothing is in it.
    #[inline]
    pub fn take_spare(&mut self) -> Option<Box<Output>> {
        self.fresh.take_if(|out| out.is_empty())
    }

    /// Takes out the buffer of a connection that is gone.
    pub(super) fn into_spare(self) -> Option<Box<Output>> {
        let mut spare = self.fresh?;
        spare.clear();
        Some(spare)
    }

    /// What rests on changes of this turn may not leave before they are safe; false if that was
    /// known.
    #[inline]
    pub(super) fn depend(&mut self) -> bool {
        !std::mem::replace(&mut self.depends, true)
    }

    /// Something in it rests on changes that are not handed in yet.
    #[inline]
    pub const fn depends(&self) -> bool {
        self.depends
    }

    /// Whether the output of this turn rests on changes; they are handed in now.
    pub(super) fn take_depends(&mut self) -> bool {
        std::mem::take(&mut self.depends)
    }

    /// What may be sent now; none while nothing may.
    #[inline]
    pub fn sendable(&mut self) -> Option<&mut Output> {
        self.join_held();
        self.is_welcomed |= self.held.is_none();
        match &mut self.held {
            Some(held) => Some(&mut held.ready),
            None => self.fresh.as_deref_mut(),
        }
    }

    /// Remembers where the output of the next turn begins, after something was sent.
    #[inline]
    pub fn was_sent(&mut self) {
        let left = self.fresh.as_ref().map_or(0, |out| out.len());
        self.left = u32::try_from(left).expect("the limits of the output are far below");
    }

    /// The output of this turn stands behind what waits; if nothing does, it is written with what
    /// was released.
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

    /// Bytes that wait, for the socket or for the disk.
    #[inline]
    pub fn waiting(&self) -> usize {
        let fresh = self.fresh.as_ref().map_or(0, |out| out.len());
        fresh + self.held.as_ref().map_or(0, |held| held.len())
    }

    /// Holds back the output of a turn. What earlier turns left may still be sent, and a packet of
    /// it may be half sent.
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

    /// Takes out what is of this turn.
    fn take_new(&mut self) -> Output {
        match (self.left, &mut self.fresh) {
            (_, None) => Output::new(),
            (0, out) => out.take().map_or_else(Output::new, |out| *out),
            (left, Some(out)) => out.split_off(left as usize),
        }
    }

    /// What turns up to this one produced may be written.
    pub(super) fn release(&mut self, turn: u64) {
        if let Some(held) = &mut self.held {
            self.is_welcomed |= held.release(turn);
        }
    }

    /// The connection belongs to a session from now on, whose CONNACK is in the output of this
    /// turn.
    pub fn begin_session(&mut self, session: Slot) {
        self.session = Some(session);
        self.is_welcomed = false;
    }

    /// The connection ends, and belongs to no session any more.
    pub fn end_session(&mut self) {
        self.session = None;
    }

    /// The session that the connection belongs to.
    #[inline]
    pub const fn session(&self) -> Option<Slot> {
        self.session
    }

    /// Throws away what may not be written yet, since the connection ends; true if the CONNACK was
    /// among it. What is left ends with a whole packet, of which the socket may have taken a part.
    pub fn drop_held(&mut self) -> bool {
        let is_any = self.depends || self.held.is_some();
        let depends = std::mem::take(&mut self.depends);
        if let Some(held) = self.held.take() {
            self.fresh = Some(Box::new(held.ready));
            self.was_sent();
        } else if depends {
            drop(self.take_new());
        }
        is_any && !self.is_welcomed
    }

    /// Nobody reads what waits for the socket, or for the disk.
    #[inline]
    pub fn discard(&mut self) {
        self.fresh = None;
        self.left = 0;
        self.held = None;
    }
}
