//! Whether a connection is read: the reasons why it is not, and its pending input.

/// Why a connection is not read for now. Each one ends on its own; the connection is read when none
/// is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum PauseReason {
    /// Its messages go to a worker whose mailbox is full.
    Mailbox = 1,
    /// It publishes, and memory is short or turns take too long.
    Overload = 1 << 1,
    /// It publishes, and the storage thread has no room.
    Storage = 1 << 2,
    /// It does not read the broker's answers.
    Output = 1 << 3,
    /// The gatekeeper has to decide about its next packet.
    Decision = 1 << 4,
    /// It has used up a rate.
    Rate = 1 << 5,
    /// Its messages are for a queue that is full, and many bytes wait behind them.
    Room = 1 << 6,
    /// Its next packet waits behind mail.
    Mail = 1 << 7,
    /// It publishes, and there is more output than one turn writes.
    Writing = 1 << 15,
}

impl PauseReason {
    const ALL: [Self; 9] = [
        Self::Mailbox,
        Self::Overload,
        Self::Storage,
        Self::Output,
        Self::Decision,
        Self::Rate,
        Self::Room,
        Self::Mail,
        Self::Writing,
    ];

    /// The reason in words, for logs and listings.
    const fn words(self) -> &'static str {
        match self {
            Self::Mailbox => "it publishes to a worker that has too much to do",
            Self::Overload => "it publishes while memory is short or the broker is overloaded",
            Self::Storage => "it publishes while the storage has no room",
            Self::Output => "it does not take the answers to what it sends",
            Self::Decision => "a backend decides about its next packet",
            Self::Rate => "it has used up a rate of messages or bytes",
            Self::Room => "what it publishes is for a queue that is full, and is waited for",
            Self::Mail => "its next packet waits for other workers",
            Self::Writing => "it publishes while more is to be written than a turn writes",
        }
    }
}

/// The reasons why one connection is not read, and its pending input.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadGate(u16);

impl ReadGate {
    const REASONS: u16 = 0xFF | PauseReason::Writing as u16;
    /// The socket may have input; the poll does not report it again.
    const READABLE: u16 = 1 << 8;
    /// The end of the stream was signalled: the socket is read to its end.
    const ENDING: u16 = 1 << 9;
    /// Whole packets have been read and not handled.
    const PACKETS: u16 = 1 << 10;
    /// It is in the list of connections that the next turn reads.
    const LISTED: u16 = 1 << 11;
    /// The current packet has waited for the mail present.
    const BEHIND_MAIL: u16 = 1 << 12;
    /// A PUBLISH is held back: of the packets behind it only answers are handled.
    const HELD: u16 = 1 << 13;
    /// Its layers have ended: it ends after the packets that were left.
    const OVER: u16 = 1 << 14;

    /// Adds a reason; false if it was present.
    pub(crate) fn close(&mut self, reason: PauseReason) -> bool {
        let was_closed = self.has(reason);
        self.0 |= reason as u16;
        !was_closed
    }

    /// Removes a reason; false if it was absent.
    pub(crate) fn open(&mut self, reason: PauseReason) -> bool {
        let was_closed = self.has(reason);
        self.0 &= !(reason as u16);
        was_closed
    }

    /// Removes every reason against reading.
    pub(crate) fn clear_reasons(&mut self) {
        self.0 &= !Self::REASONS;
    }

    /// The connection ends: pending input is discarded, and further input is read.
    pub(crate) fn drain(&mut self) {
        self.0 &= !(Self::REASONS | Self::PACKETS | Self::OVER);
    }

    pub(crate) fn has(self, reason: PauseReason) -> bool {
        self.0 & reason as u16 != 0
    }

    /// The reasons in words, for logs and listings.
    pub(crate) fn reasons(self) -> impl Iterator<Item = &'static str> {
        let all = PauseReason::ALL.into_iter();
        let held = self.is_held() && !self.has(PauseReason::Room);
        let held = held.then_some("a message that it published waits for room in a queue");
        all.filter(move |reason| self.has(*reason))
            .map(PauseReason::words)
            .chain(held)
    }

    /// One of the reasons; none if it is read. A PUBLISH that is held waits for room.
    pub(crate) fn first_reason(self) -> Option<PauseReason> {
        let mut all = PauseReason::ALL.into_iter();
        let held = self.is_held().then_some(PauseReason::Room);
        held.or_else(|| all.find(|reason| self.has(*reason)))
    }

    /// Whether no reason prevents reading.
    #[inline]
    pub(crate) fn is_open(self) -> bool {
        self.0 & Self::REASONS == 0
    }

    /// Whether the broker keeps the client from showing that it is alive: the connection is not
    /// read, or its input is unhandled.
    pub(crate) fn keeps_client_waiting(self) -> bool {
        let ours = Self::REASONS & !(PauseReason::Output as u16)
            | Self::PACKETS
            | Self::LISTED
            | Self::HELD;
        self.0 & ours != 0
    }

    /// Records an event of the poll.
    #[inline]
    pub(crate) fn note_readable(&mut self, is_ending: bool) {
        self.0 |= Self::READABLE;
        if is_ending {
            self.0 |= Self::ENDING;
        }
    }

    /// Records a short read: the socket has no more for now, unless its end is still to be read.
    #[inline]
    pub(crate) fn note_drained(&mut self) {
        if !self.is_ending() {
            self.0 &= !Self::READABLE;
        }
    }

    /// Whether the end of the stream has been signalled.
    #[inline]
    pub(crate) fn is_ending(self) -> bool {
        self.0 & Self::ENDING != 0
    }

    /// Records that a PUBLISH is held back.
    pub(crate) fn hold(&mut self) {
        self.0 |= Self::HELD;
    }

    #[inline]
    pub(crate) fn is_held(self) -> bool {
        self.0 & Self::HELD != 0
    }

    /// Ends the hold: the held packets are handled next.
    pub(crate) fn release_held(&mut self) {
        self.0 &= !Self::HELD;
        self.open(PauseReason::Room);
        self.leave_packets();
    }

    /// Records that the current packet waits behind the mail present.
    pub(crate) fn wait_behind_mail(&mut self) {
        self.0 |= Self::BEHIND_MAIL;
        self.close(PauseReason::Mail);
    }

    /// Whether the current packet has waited behind mail; another one may have to.
    pub(crate) fn has_waited_behind_mail(&mut self) -> bool {
        let has_stood = self.0 & Self::BEHIND_MAIL != 0;
        self.0 &= !Self::BEHIND_MAIL;
        has_stood
    }

    /// Records that the end of the stream has been read: no more input follows.
    pub(crate) fn forget_input(&mut self) {
        self.0 &= !(Self::READABLE | Self::ENDING | Self::PACKETS | Self::OVER);
    }

    /// Records that the layers deliver no more input.
    pub(crate) fn note_over(&mut self) {
        self.0 |= Self::OVER;
    }

    /// Whether the layers have ended.
    #[inline]
    pub(crate) fn is_over(self) -> bool {
        self.0 & Self::OVER != 0
    }

    /// Records that packets are left in the connection.
    pub(crate) fn leave_packets(&mut self) {
        self.0 |= Self::PACKETS;
    }

    /// Whether packets were left; they are handled or discarded now.
    #[inline]
    pub(crate) fn take_packets(&mut self) -> bool {
        let had_packets = self.0 & Self::PACKETS != 0;
        self.0 &= !Self::PACKETS;
        had_packets
    }

    pub(crate) fn has_packets(self) -> bool {
        self.0 & Self::PACKETS != 0
    }

    /// Whether there is input to handle.
    #[inline]
    pub(crate) fn has_input(self) -> bool {
        self.0 & (Self::READABLE | Self::PACKETS | Self::OVER) != 0
    }

    /// Adds the connection to the list of the next turn; false if it is listed already.
    pub(crate) fn enlist(&mut self) -> bool {
        let was_listed = self.is_listed();
        self.0 |= Self::LISTED;
        !was_listed
    }

    /// Removes the connection from the list; false if it was not listed.
    pub(crate) fn unlist(&mut self) -> bool {
        let was_listed = self.is_listed();
        self.0 &= !Self::LISTED;
        was_listed
    }

    #[inline]
    pub(crate) fn is_listed(self) -> bool {
        self.0 & Self::LISTED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_opens_when_the_last_reason_ends() {
        let mut gate = ReadGate::default();
        assert!(gate.is_open());
        assert!(gate.close(PauseReason::Mailbox) && gate.close(PauseReason::Output));
        assert!(!gate.close(PauseReason::Output), "it was closed for that");
        assert!(gate.open(PauseReason::Mailbox) && !gate.is_open());
        assert!(!gate.open(PauseReason::Mailbox), "that was over");
        assert!(gate.open(PauseReason::Output) && gate.is_open());
    }

    #[test]
    fn every_reason_has_its_words() {
        let mut gate = ReadGate::default();
        assert_eq!(gate.reasons().count(), 0);
        for (count, reason) in PauseReason::ALL.into_iter().enumerate() {
            gate.close(reason);
            assert_eq!(gate.reasons().count(), count + 1, "{reason:?}");
        }
        assert_eq!(gate.0, ReadGate::REASONS);
    }

    #[test]
    fn a_publish_that_is_held_waits_for_room() {
        let mut gate = ReadGate::default();
        assert_eq!(gate.first_reason(), None);
        gate.close(PauseReason::Rate);
        assert_eq!(gate.first_reason(), Some(PauseReason::Rate));
        gate.hold();
        assert_eq!(gate.first_reason(), Some(PauseReason::Room));
    }

    #[test]
    fn pending_input_is_recorded_while_the_gate_is_closed() {
        let mut gate = ReadGate::default();
        gate.close(PauseReason::Rate);
        gate.note_readable(false);
        gate.leave_packets();
        gate.note_drained();
        assert!(gate.has_input() && gate.keeps_client_waiting());
        assert!(gate.take_packets() && !gate.has_input());
        gate.note_readable(true);
        gate.note_drained();
        assert!(gate.has_input(), "the end itself is still to be read");
    }

    #[test]
    fn the_end_of_the_layers_is_input_until_the_connection_ends() {
        let mut gate = ReadGate::default();
        gate.close(PauseReason::Writing);
        gate.leave_packets();
        gate.note_over();
        assert!(gate.take_packets() && gate.has_input());
        gate.drain();
        assert!(gate.is_open() && !gate.is_over() && !gate.has_input());
    }

    #[test]
    fn a_client_that_does_not_read_keeps_itself_waiting() {
        let mut gate = ReadGate::default();
        gate.close(PauseReason::Output);
        assert!(!gate.keeps_client_waiting());
        gate.close(PauseReason::Decision);
        assert!(gate.keeps_client_waiting());
    }
}
